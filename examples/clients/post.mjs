// Creates a post, reads it, and changes it unless somebody else has changed it.
import { fetchAsUser, server } from './login.mjs';

const headers = { 'Content-Type': 'application/json' };
const body = JSON.stringify({ title: 'Hello, fetch', content: 'Written in JavaScript.' });
const created = await fetchAsUser(`${server}/posts`, { method: 'POST', headers, body });
if (!created.ok) throw new Error((await created.json()).error);
const post = new URL(created.headers.get('Location'), server);
const etag = (await fetchAsUser(post)).headers.get('ETag');
const changed = await fetchAsUser(post, {
  method: 'PUT',
  headers: { ...headers, 'If-Match': etag },
  body,
});
console.log(changed.status); // 204
