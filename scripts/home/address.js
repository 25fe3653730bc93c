/** Names the address of this server, as the visitor sees it, in the example of the front page. */
document.querySelector('#address').textContent = location.origin;
