/**
 * Every header that changes what a request means is obeyed or refused on every route, as the table
 * of docs/headers.md says: a route or a header without its cell fails.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { logIn } from '../support/login.ts';
import { routes } from '../support/reference.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { projectFolder } from '../support/source.ts';

const page = await readFile(join(projectFolder, 'docs', 'headers.md'), 'utf8');
const [titles = [], , ...lines] = page
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => line.split('|').slice(1, -1))
  .map((cells) => cells.map((cell) => cell.trim().replaceAll('`', '')));
const columns = titles.slice(0, -1);
/** Routes that have the same cells share a line. */
const rows = lines.flatMap((cells) =>
  (cells.pop() ?? '').split(', ').map((name) => [name, ...cells]),
);

type Headers = Readonly<Record<string, string>>;
interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
}
/** Sends one request of the route, to the same record each time. */
type Send = (headers?: Headers) => Promise<Answer>;

const formType = 'multipart/form-data; boundary=b';
const form =
  '--b\r\nContent-Disposition: form-data; name="part"; filename="a.txt"\r\n\r\nx\r\n--b--\r\n';
const mergePatch = 'application/merge-patch+json';

/** Bodies of the routes that need one: JSON, or of the given type. */
const bodies: Readonly<Record<string, readonly [body: unknown, type?: string]>> = {
  'POST /graphql': [
    { query: 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }' },
  ],
  'POST /posts': [{ title: 'a', content: 'b' }],
  'PUT /posts/{id}': [{ title: 'c', content: 'd' }],
  'PATCH /posts/{id}': [{ title: 'c' }, mergePatch],
  'POST /posts/{id}/comments': [{ content: 'a' }],
  'PATCH /comments/{id}': [{ status: 'PUBLISHED' }, mergePatch],
  'POST /auth/login': [{ username: 'user', password: 'password' }],
  'POST /auth/password': [{ password: 'password', newPassword: 'a jar of black ink' }],
  'POST /api/multiparts/simple': [form, formType],
  'POST /api/multiparts/list': [form, formType],
  'POST /api/todos': [{ title: 'a' }],
  'PATCH /api/todos/{id}': [{ completed: true }, mergePatch],
  'POST /api/articles': [{ id: 1, title: 'a' }],
  'PATCH /api/articles': [[], 'application/json-patch+json'],
  'PATCH /api/articles/{id}': [{ tags: [] }, mergePatch],
  'PATCH /articles/{id}': [{ tags: [] }, mergePatch],
};

/** Makes the record that a path names, and returns the path of it. */
async function prepare(server: TestServer, path: string): Promise<string> {
  const make = async (target: string, body: object): Promise<string> => {
    const { headers } = await server.send('POST', target, body);
    return headers.get('location')?.split('/').at(-1) ?? '';
  };
  const makePost = () => make('/posts', { title: 'a', content: 'b' });
  const headers = { 'Content-Type': formType };
  await server.fetch('/api/multiparts/list', { method: 'POST', headers, body: form });
  if (path === '/graphql') return '/graphql?query={__typename}';
  if (path === '/comments') return path;
  if (path.startsWith('/comments/')) {
    return `/comments/${await make(`/posts/${await makePost()}/comments`, { content: 'a' })}`;
  }
  if (path.startsWith('/posts/')) return path.replace('{id}', await makePost());
  if (path === '/api/todos/{id}') return `/api/todos/${await make('/api/todos', { title: 'a' })}`;
  if (path.endsWith('articles/{id}')) {
    return path.replace('{id}', await make('/api/articles', { title: 'a' }));
  }
  return path.replace('{name}', 'a.txt').replace('*', '');
}

async function prepareSend(server: TestServer, token: string, name: string): Promise<Send> {
  const [method = '', path = ''] = name.split(' ');
  const target = await prepare(server, path);
  const [given, type = 'application/json'] = bodies[name] ?? [];
  const body = path === '/comments/removals' ? { ids: [target.split('/')[2]] } : given;
  return async (headers = {}) => {
    const all = { Authorization: `Bearer ${token}`, ...headers };
    const asked = request({
      port: server.port,
      agent: false,
      method,
      path: method === 'POST' ? path.replace('{id}', target.split('/')[2] ?? '') : target,
      headers: body === undefined ? all : { 'Content-Type': type, ...all },
    });
    if (body === undefined) asked.end();
    else asked.end(typeof body === 'string' ? body : JSON.stringify(body));
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.destroy();
    return { status: response.statusCode ?? 0, headers: response.headers };
  };
}

/** What the program does with a header, in the words of the table. */
const probes: Readonly<Record<string, (open: () => Promise<Send>) => Promise<string>>> = {
  'If-Match': async (open) => {
    const { status } = await (await open())({ 'If-Match': '"none"' });
    if (status !== 412) return '–';
    return (await (await open())({ 'If-Match': '*' })).status < 300 ? 'obeyed' : '412';
  },
  'If-None-Match': async (open) => {
    const { status } = await (await open())({ 'If-None-Match': '*' });
    return status === 304 || status === 412 ? 'obeyed' : '–';
  },
  Range: async (open) =>
    (await (await open())({ Range: 'bytes=0-0' })).status === 206 ? 'obeyed' : '–',
  'Content-Range': async (open) =>
    statusOrNone(await (await open())({ 'Content-Range': 'bytes 0-0/9' })),
  'Content-Encoding': async (open) =>
    statusOrNone(await (await open())({ 'Content-Encoding': 'gzip' })),
  Expect: async (open) => {
    const { status } = await (await open())({ Expect: 'something' });
    const invited = await (await open())({ Expect: '100-continue' });
    return status === 417 && isDone(invited) ? 'obeyed' : '–';
  },
  Prefer: async (open) => {
    const { headers } = await (await open())({ Prefer: 'return=representation' });
    return headers['preference-applied'] === undefined ? '–' : 'obeyed';
  },
  'Idempotency-Key': async (open) => {
    const send = await open();
    const key = { 'Idempotency-Key': `key-${Math.random()}` };
    await send(key);
    return (await send(key)).headers['idempotency-replayed'] === 'true' ? 'obeyed' : '–';
  },
};

/** A store in memory has no account whose password changes (R51). */
const isDone = ({ status }: Answer): boolean => status < 400 || status === 403;

function statusOrNone({ status }: Answer): string {
  return status >= 400 ? String(status) : '–';
}

suite('the table of headers', async () => {
  test('has every route and every header', () => {
    const names = routes.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(new Set(rows.map(([name]) => name)), new Set(names));
    assert.equal(rows.length, names.length);
    assert.deepEqual(columns, Object.keys(probes));
  });

  test('says what the program does', async (t) => {
    const env = { TOKEN_TTL_SECONDS: '3600' };
    const server = await startServer(t, { env });
    const token = await logIn(server, 'user');
    const faults: unknown[] = [];
    for (const [name = '', ...cells] of rows) {
      const open = (): Promise<Send> => prepareSend(server, token, name);
      const plain = await (await open())();
      assert.ok(isDone(plain), `${name}: ${plain.status}`);
      const found: string[] = [];
      for (const probe of Object.values(probes)) found.push(await probe(open));
      if (String(found) !== String(cells)) faults.push({ name, found, cells });
    }
    assert.deepEqual(faults, []);
  });

  test('has no header that names another method: it is refused', async (t) => {
    const server = await startServer(t);
    for (const name of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override']) {
      for (const [value, status] of [
        ['PATCH', 400],
        ['delete', 400],
        ['post', 201],
        ['', 201],
      ] as const) {
        const headers = { 'Content-Type': 'application/json', [name]: value };
        const init = { method: 'POST', headers, body: '{"title":"a","content":"b"}' };
        assert.equal((await server.fetch('/posts', init)).status, status, `${name} ${value}`);
      }
    }
  });
});
