/**
 * A button that logs in, and lets each request of this page carry the token until the session ends,
 * or the server refuses the token. All tabs get the schema by one request.
 */

import { keepSession } from './session.js';

const graphql = new URL('../graphql', document.baseURI).href;
const login = new URL('../auth/login', document.baseURI);

let authorization;
let stop = () => undefined;
/** The response with the schema, for a second: each tab asks for it when the page opens. */
let schema;

const { fetch: fetchWithout } = globalThis;
globalThis.fetch = (resource, options) => {
  const request = new Request(resource, options);
  if (authorization !== undefined && request.url === graphql) {
    request.headers.set('Authorization', authorization);
  }
  const body = options?.body;
  if (typeof body !== 'string' || !body.includes('query IntrospectionQuery ')) {
    return send(request);
  }
  if (schema === undefined) setTimeout(() => (schema = undefined), 1_000);
  schema ??= send(request);
  return schema.then((response) => response.clone());
};

async function send(request) {
  const response = await fetchWithout(request);
  const isRefused = response.status === 401 && request.url === graphql;
  // A new login may have come meanwhile.
  if (isRefused && request.headers.get('Authorization') === authorization) {
    logOut('The session has ended.');
  }
  return response;
}

document.body.insertAdjacentHTML(
  'beforeend',
  `<button type="button" class="login-button">Log in</button>
  <dialog class="login-dialog">
    <form>
      <label>Username <input name="username" autocomplete="username" required /></label>
      <label>Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <p class="hint"></p>
      <output></output>
      <button>Log in</button>
      <button type="button" name="logout" hidden>Log out</button>
      <button type="button" name="cancel">Cancel</button>
    </form>
  </dialog>`,
);
const button = document.querySelector('.login-button');
const dialog = document.querySelector('.login-dialog');
const form = dialog.querySelector('form');
const output = form.querySelector('output');

button.addEventListener('click', () => {
  output.textContent = '';
  form.elements.logout.hidden = authorization === undefined;
  dialog.showModal();
  void showHint();
});
form.elements.logout.addEventListener('click', () => {
  logOut('');
  dialog.close();
});
form.elements.cancel.addEventListener('click', () => dialog.close());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  logIn(Object.fromEntries(new FormData(form))).catch((error) => {
    output.textContent = error.message;
  });
});

/** A server that shows the first demo post has the demo accounts too, unless told otherwise. */
async function showHint() {
  const query = '{ postById(postId: "019b8d5e-9c00-7000-8000-000000000101") { title } }';
  const response = await fetchWithout(graphql, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const { data } = await response.json();
  if (data?.postById) form.querySelector('.hint').textContent = 'Demo account: user / password';
}

async function logIn(credentials) {
  const response = await fetchWithout(login, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(credentials),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? response.statusText);
  form.reset();
  dialog.close();
  keep(body, credentials.username);
}

function keep({ access_token: token }, username) {
  stop();
  button.textContent = username;
  button.title = 'Logged in. Press to log out.';
  stop = keepSession(token, {
    onToken: (next) => (authorization = `Bearer ${next}`),
    onEnd: () => logOut('The session has ended.'),
  });
}

function logOut(reason) {
  stop();
  authorization = undefined;
  button.textContent = 'Log in';
  button.title = reason;
}
