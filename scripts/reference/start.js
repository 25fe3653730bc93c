/* global SwaggerUIBundle */
/** Starts the viewer; in a file of its own, since the page's policy allows no script in it. */
SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  // Operations show their own schemas.
  defaultModelsExpandDepth: -1,
  // The viewer would ask another host whether the document is valid.
  validatorUrl: null,
});

const dark = matchMedia('(prefers-color-scheme: dark)');
function followSystem() {
  document.documentElement.classList.toggle('dark-mode', dark.matches);
}
dark.addEventListener('change', followSystem);
followSystem();
