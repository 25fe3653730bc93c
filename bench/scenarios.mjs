/** What is measured: one request a scenario, made against a running service that holds the data. */

const json = { 'Content-Type': 'application/json' };
export const text =
  'An answer of the length that a person would write under a post, and no longer.';
export const listQuery = '{ allPosts { id title content author { name } comments { content } } }';
const oneQuery =
  'query($id: String!) { postById(postId: $id) ' +
  '{ id title content status createdAt author { name } comments { content } } }';
const createQuery = 'mutation($input: CreatePostInput!) { createPost(createPostInput: $input) }';

/** Brings a fresh service (DEMO_DATA=false) to `posts` posts with five comments each. */
export async function seed(url, posts = 100) {
  const token = await logIn(url);
  const ids = [];
  for (let number = 0; number < posts; number += 1) {
    const post = { title: `Post ${number} of the measured list`, content: `${text} ${text}` };
    const created = await send(`${url}/posts`, post, { Authorization: `Bearer ${token}` });
    const location = created.headers.get('location');
    ids.push(location.split('/').at(-1));
    for (let comment = 0; comment < 5; comment += 1) {
      await send(`${url}${location}/comments`, { content: text });
    }
  }
  return { token, ids };
}

/**
 * Name → request. `@` in a body is replaced by a running number, so that no two are equal. Of
 * `every` requests one is `write`, where there is one.
 */
export function scenarios({ token, ids }) {
  const post = (path, body, headers = json) => {
    return { method: 'POST', path, headers, body: JSON.stringify(body) };
  };
  const byId = (id) => ({ query: oneQuery, variables: { id } });
  const patch = [
    { op: 'replace', path: '/title', value: 'A changed title' },
    { op: 'replace', path: '/author/familyName', value: 'Changed' },
    { op: 'replace', path: '/tags/0', value: 'changed' },
  ];
  const neverSeen = `{ q@: postById(postId: "${ids[7]}") { id title author { name } } }`;
  const patched = {
    ...post('/api/articles/1', patch, { 'Content-Type': 'application/json-patch+json' }),
    method: 'PATCH',
  };
  const changed = {
    ...post(`/posts/${ids[7]}`, { title: 'A changed post', content: text }),
    method: 'PUT',
  };
  // On the oldest post, which the page does not have: the comments of what is read do not grow.
  const commented = post(`/posts/${ids[0]}/comments`, { content: text });
  const page = post('/graphql', { query: listQuery.replace('allPosts', 'allPosts(first: 99)') });
  const one = post('/graphql', byId(ids[7]));
  const hello = { method: 'GET', path: '/hello' };
  const list = { method: 'GET', path: '/posts' };
  const all = post('/graphql', { query: listQuery });
  return {
    'GET /hello': hello,
    'GET /hello, 8 pipelined': { ...hello, pipelined: 8 },
    'GET /hello, one connection': { ...hello, connections: 1 },
    'GET /hello, no keep-alive': { ...hello, headers: { Connection: 'close' }, keepAlive: false },
    'GET /posts/{id}': { method: 'GET', path: `/posts/${ids[7]}` },
    'GET /posts, 100 posts': list,
    'GET /profile': {
      method: 'GET',
      path: '/profile',
      headers: { Authorization: `Bearer ${token}` },
    },
    'GraphQL allPosts, 100 posts': all,
    'GraphQL postById': one,
    'GraphQL batch of 10': post('/graphql', ids.slice(0, 10).map(byId)),
    'GraphQL document never seen': post('/graphql', { query: neverSeen }),
    'upload of 1 MiB': upload(1024 * 1024),
    ...mixed('GET /posts', list, {
      'PATCH of an article': patched,
      'PUT of a post': changed,
      'POST of a comment': commented,
    }),
    ...mixed('GraphQL allPosts', all, { 'PATCH of an article': patched, 'PUT of a post': changed }),
    ...mixed('GraphQL allPosts(first: 99)', page, { 'POST of a comment': commented }),
    ...mixed('GraphQL postById', one, { 'POST of a comment on another post': commented }),
    'PATCH /api/articles/1': patched,
    'POST /posts': post('/posts', { title: 'A new post', content: text }),
    'GraphQL createPost': post('/graphql', {
      query: createQuery,
      variables: { input: { title: 'A new post', content: text } },
    }),
  };
}

/** A read beside each of the writes: every tenth request is one, and every second. */
function mixed(name, read, writes) {
  return Object.fromEntries(
    Object.entries(writes).flatMap(([what, write]) => [
      [`${name}, 10 % ${what}`, { ...read, write, every: 10 }],
      [`${name}, 50 % ${what}`, { ...read, write, every: 2 }],
    ]),
  );
}

/** A token of the account that the demo data and `service.mjs` have. */
export async function logIn(url) {
  const user = { username: 'user', password: 'password' };
  const response = await send(`${url}/auth/login`, user);
  return /** @type {{ access_token: string }} */ (await response.json()).access_token;
}

function upload(bytes) {
  const boundary = 'a-boundary-that-the-content-does-not-hold';
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n`;
  const body = Buffer.concat([
    Buffer.from(head),
    Buffer.alloc(bytes, 'some bytes, and some more. '),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
  return { method: 'POST', path: '/api/multiparts/list', headers, body };
}

export function send(url, body, headers = {}) {
  const init = { method: 'POST', body: JSON.stringify(body), headers: { ...json, ...headers } };
  return fetch(url, init).then((response) => {
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return response;
  });
}

/** What `load.mjs` reads: requests that are sent in turns. */
export function toLoad(requests, { keepAlive = true, pipelined = 1 } = {}) {
  return JSON.stringify({ requests: requests.map(toWire), keepAlive, pipelined });
}

function toWire({ method, path, headers = {}, body }) {
  const head = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1'];
  for (const pair of Object.entries(headers)) head.push(pair.join(': '));
  const bytes = Buffer.from(body ?? '').toString('base64');
  return { head: `${head.join('\r\n')}\r\n`, body: bytes, hasBody: body !== undefined };
}

/** A request and, at the end of each `every` of them, another one. */
export function mix(request, write, every) {
  return [...Array(every - 1).fill(request), write];
}
