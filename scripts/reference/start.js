/* global SwaggerUIBundle */
/** Starts the viewer; in a file of its own, since the page's policy allows no script in it. */
SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  // The viewer would ask another host whether the document is valid.
  validatorUrl: null,
});
