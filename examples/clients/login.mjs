// Logs in for the other programs. Each takes the URL of the server as its argument.
export const server = process.argv[2] ?? 'http://localhost:8080';
let session;

/** A token that is valid for another ten seconds. */
export async function getToken() {
  if (session?.expires > Date.now() + 10_000) return session.token;
  const response = await fetch(`${server}/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username: 'user', password: 'password' }),
  });
  const { access_token: token, error } = await response.json();
  if (!response.ok) throw new Error(error);
  const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
  session = { token, expires: JSON.parse(atob(payload)).exp * 1000 };
  return token;
}
