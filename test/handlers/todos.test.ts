import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pluck } from '../support/lists.ts';
import { ask } from '../support/raw-client.ts';
import { type Sent, startServer } from '../support/server.ts';

const missing = '00000000-0000-7000-8000-0000000000ff';

interface Todo {
  readonly id: string;
  readonly title: string;
  readonly completed: boolean;
}

test('GET /api/todos: three entries at the start, none completed, without demo data too', async (t) => {
  for (const DEMO_DATA of ['true', 'false']) {
    const server = await startServer(t, { env: { DEMO_DATA } });
    const todos = await server.read<Todo[]>('/api/todos');
    assert.deepEqual(pluck(todos, 'completed'), [false, false, false], DEMO_DATA);
    for (const todo of todos) assert.deepEqual(Object.keys(todo), ['id', 'title', 'completed']);
  }
});

test('POST /api/todos: 201 with an absolute Location, last in the list (R2, R12, R13)', async (t) => {
  const server = await startServer(t);
  const body = { title: 'A todo', id: missing, unknown: 1 };
  const response = await server.send('POST', '/api/todos', body);
  assert.equal(response.status, 201);
  const location = response.headers.get('location') ?? '';
  assert.ok(location.startsWith(`${server.url}/api/todos/`));
  const todo: unknown = await (await fetch(location)).json();
  const id = location.slice(location.lastIndexOf('/') + 1);
  assert.notEqual(id, missing);
  assert.deepEqual(todo, { id, title: 'A todo', completed: false });
  const done = await server.make('/api/todos', { title: 'Done', completed: true });
  const second = { id: done.split('/').at(-1), title: 'Done', completed: true };
  assert.deepEqual((await server.read<Todo[]>('/api/todos')).slice(3), [todo, second]);
});

test('the Location has PUBLIC_URL where one is set, else the host of the request', async (t) => {
  const others = ['X-Forwarded-Host: evil.example', 'X-Forwarded-Proto: https'];
  const content = ['Content-Type: application/json', 'Content-Length: 13', '', '{"title":"a"}'];
  const plain = await startServer(t);
  const named = await startServer(t, { env: { PUBLIC_URL: 'https://todo.example' } });
  for (const [port, host, base] of [
    [plain.port, '1.1\r\nHost: other.example:99', 'http://other.example:99/api/todos/'],
    [plain.port, '1.1\r\nHost: [::1]:80', 'http://[::1]:80/api/todos/'],
    [plain.port, '1.0', `${plain.url}/api/todos/`],
    [named.port, '1.1\r\nHost: other.example', 'https://todo.example/api/todos/'],
  ] as const) {
    const lines = [`POST /api/todos HTTP/${host}`, ...others, ...content];
    const { headers } = await ask(t, port, lines.join('\r\n'));
    assert.equal(headers.get('location')?.slice(0, -36), base);
  }
});

test('GET /api/todos/{id}: the todo, in either case of its id; else 404 (R4, R13)', async (t) => {
  const server = await startServer(t);
  const [first = assert.fail()] = await server.read<Todo[]>('/api/todos');
  for (const id of [first.id, first.id.toUpperCase()]) {
    assert.deepEqual(await server.read(`/api/todos/${id}`), first, id);
  }
  for (const id of [missing, 'x', '1', `${first.id} `, '__proto__']) {
    const { status } = await server.fetch(`/api/todos/${encodeURIComponent(id)}`);
    assert.equal(status, 404, id);
  }
});

test('a body that is no todo is 422 with a pointer for every fault', async (t) => {
  const server = await startServer(t);
  for (const [body, ...pointers] of [
    [{}, '/title'],
    [{ title: ' ' }, '/title'],
    [{ title: 1, completed: 'yes' }, '/title', '/completed'],
    [{ title: 'a', completed: 1 }, '/completed'],
    [[], ''],
    [null, ''],
  ] as const) {
    const response = await server.send('POST', '/api/todos', body);
    assert.equal(response.status, 422, JSON.stringify(body));
    const problem = (await response.json()) as { error: string; errors: { pointer: string }[] };
    const places = pointers[0] === '' ? '' : ` at ${pointers.join(', ')}`;
    assert.equal(problem.error, `The request body is not valid${places}.`);
    assert.deepEqual(pluck(problem.errors, 'pointer'), pointers);
  }
  assert.equal((await server.read<Todo[]>('/api/todos')).length, 3);
});

test('PATCH and DELETE /api/todos/{id}: completed or renamed, and removed (R37)', async (t) => {
  const server = await startServer(t);
  const list = () => server.read<Todo[]>('/api/todos');
  const [first, second, third] = await list();
  const path = `/api/todos/${second?.id ?? ''}`;
  const type = { 'Content-Type': 'application/merge-patch+json' };
  const patch = async (body: unknown, more: Sent = {}): Promise<number> =>
    (await server.send('PATCH', path, body, { ...type, ...more })).status;
  const remove = async (headers: Sent = {}): Promise<number> =>
    (await server.fetch(path, { method: 'DELETE', headers })).status;
  assert.equal(await patch({ completed: true }), 204);
  assert.deepEqual(await list(), [first, { ...second, completed: true }, third]);
  assert.equal(await patch({ title: 'New', id: 'x' }), 204);
  assert.deepEqual((await list())[1], { id: second?.id, title: 'New', completed: true });
  for (const body of [{ completed: null }, { completed: 1 }, { title: null }, { title: '' }, 1]) {
    assert.equal(await patch(body), 422, JSON.stringify(body));
  }
  assert.equal(await patch({}, { 'If-Match': '"x"' }), 412);
  assert.equal(await remove({ 'If-Match': '"x"' }), 412);
  assert.equal(await patch({ completed: true }, { 'Content-Type': 'application/json' }), 415);
  assert.equal(await remove(), 204);
  assert.deepEqual(await list(), [first, third]);
  assert.deepEqual(
    [(await server.fetch(path)).status, await remove(), await patch({})],
    [404, 404, 404],
  );
});
