// Logs in for the other programs. Each takes the URL of the server as its argument.
export const server = process.argv[2] ?? 'http://localhost:8080';
/** A request without an answer is given up: the connection may be silent. */
const requestMilliseconds = 10_000;
let session;
let renewing;

/** A token. After half of its life it is refreshed, once for all who ask; when the session has ended, by a login. */
export async function getToken() {
  if (session?.refreshAt > Date.now()) return session.token;
  renewing ??= renew().finally(() => (renewing = undefined));
  return renewing;
}

async function renew() {
  const headers = { Authorization: `Bearer ${session?.token}` };
  const refreshed =
    session && (await fetchInTime(`${server}/auth/refresh`, { method: 'POST', headers }));
  const response = refreshed?.ok ? refreshed : await logIn();
  const { access_token: token, error } = await response.json();
  if (!response.ok) throw new Error(error);
  const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
  const { iat, exp } = JSON.parse(atob(payload));
  session = { token, refreshAt: Date.now() + (exp - iat) * 500 };
  return token;
}

/** `fetch` with the token. */
export async function fetchAsUser(url, options = {}) {
  const headers = new Headers(options.headers);
  headers.set('Authorization', `Bearer ${await getToken()}`);
  return fetchInTime(url, { ...options, headers });
}

/** `fetch` that fails with a TypeError, as for a lost connection, if the answer takes too long. */
export async function fetchInTime(url, options) {
  const signal = AbortSignal.timeout(requestMilliseconds);
  try {
    const response = await fetch(url, { ...options, signal });
    // Read here, because a response can also be lost in the middle.
    const body = response.status === 204 ? null : await response.arrayBuffer();
    return new Response(body, response);
  } catch (error) {
    throw new TypeError('no answer', { cause: error });
  }
}

function logIn() {
  return fetchInTime(`${server}/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username: 'user', password: 'password' }),
  });
}
