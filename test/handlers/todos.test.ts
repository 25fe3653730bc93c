import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pluck } from '../support/lists.ts';
import { ask } from '../support/raw-client.ts';
import { startServer, type TestServer } from '../support/server.ts';

const missing = '00000000-0000-7000-8000-0000000000ff';

interface Todo {
  readonly id: string;
  readonly title: string;
  readonly completed: boolean;
}

async function list(server: TestServer): Promise<readonly Todo[]> {
  const response = await server.fetch('/api/todos');
  assert.equal(response.status, 200);
  return (await response.json()) as Todo[];
}

test('GET /api/todos: three entries at the start, none completed, without demo data too', async (t) => {
  for (const demo of ['true', 'false']) {
    const server = await startServer(t, { env: { DEMO_DATA: demo } });
    const todos = await list(server);
    assert.equal(todos.length, 3, demo);
    for (const [at, todo] of todos.entries()) {
      assert.deepEqual(Object.keys(todo), ['id', 'title', 'completed'], `todo ${at}`);
      assert.equal(todo.completed, false, `todo ${at}`);
    }
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
  await server.send('POST', '/api/todos', { title: 'Done', completed: true });
  assert.deepEqual((await list(server)).slice(3), [
    todo,
    { id: (await list(server)).at(-1)?.id, title: 'Done', completed: true },
  ]);
});

test('the Location has PUBLIC_URL where one is set, else the host of the request', async (t) => {
  const others = ['X-Forwarded-Host: evil.example', 'X-Forwarded-Proto: https'];
  const content = ['Content-Type: application/json', 'Content-Length: 13', '', '{"title":"a"}'];
  const request = (host: string): string => {
    const version = host === '' ? 'HTTP/1.0' : `HTTP/1.1\r\nHost: ${host}`;
    return [`POST /api/todos ${version}`, ...others, ...content].join('\r\n');
  };
  const plain = await startServer(t);
  const named = await startServer(t, { env: { PUBLIC_URL: 'https://todo.example' } });
  const rows = [
    [plain.port, 'other.example:99', 'http://other.example:99/api/todos/'],
    [plain.port, '[::1]:80', 'http://[::1]:80/api/todos/'],
    [plain.port, '', `${plain.url}/api/todos/`],
    [named.port, 'other.example', 'https://todo.example/api/todos/'],
  ] as const;
  for (const [port, host, base] of rows) {
    await t.test(JSON.stringify([port, host]), async () => {
      const { status, headers } = await ask(t, port, request(host));
      assert.equal(status, 201);
      assert.equal(headers.get('location')?.slice(0, -36), base);
    });
  }
});

test('GET /api/todos/{id}: the todo, in either case of its id; else 404 (R4, R13)', async (t) => {
  const server = await startServer(t);
  const [first] = await list(server);
  assert.ok(first);
  for (const id of [first.id, first.id.toUpperCase()]) {
    assert.deepEqual(await (await server.fetch(`/api/todos/${id}`)).json(), first, id);
  }
  for (const id of [missing, 'x', '1', `${first.id} `, '__proto__']) {
    const response = await server.fetch(`/api/todos/${encodeURIComponent(id)}`);
    assert.equal(response.status, 404, id);
  }
});

test('a body that is no todo is 422 with a pointer for every fault', async (t) => {
  const server = await startServer(t);
  const rows: readonly (readonly [unknown, readonly string[]])[] = [
    [{}, ['/title']],
    [{ title: ' ' }, ['/title']],
    [{ title: 1, completed: 'yes' }, ['/title', '/completed']],
    [{ title: 'a', completed: 1 }, ['/completed']],
    [[], ['']],
    [null, ['']],
  ];
  for (const [body, pointers] of rows) {
    await t.test(JSON.stringify([body, pointers]), async () => {
      const response = await server.send('POST', '/api/todos', body);
      assert.equal(response.status, 422, JSON.stringify(body));
      const problem = (await response.json()) as { error: string; errors: { pointer: string }[] };
      const { error, errors } = problem;
      const places = pointers[0] === '' ? '' : ` at ${pointers.join(', ')}`;
      assert.equal(error, `The request body is not valid${places}.`);
      assert.deepEqual(pluck(errors, 'pointer'), pointers);
    });
  }
  assert.equal((await list(server)).length, 3);
});

test('PATCH and DELETE /api/todos/{id}: completed or renamed, and removed (R37)', async (t) => {
  const server = await startServer(t);
  const [first, second, third] = await list(server);
  const path = `/api/todos/${second?.id ?? ''}`;
  const change = (method: string, body?: unknown, tag?: string): Promise<Response> =>
    server.fetch(path, {
      method,
      headers: {
        'Content-Type': 'application/merge-patch+json',
        ...(tag !== undefined && { 'If-Match': tag }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  assert.equal((await change('PATCH', { completed: true })).status, 204);
  assert.deepEqual(await list(server), [first, { ...second, completed: true }, third]);
  assert.equal((await change('PATCH', { title: 'New', id: 'x' })).status, 204);
  assert.deepEqual((await list(server))[1], { id: second?.id, title: 'New', completed: true });
  for (const body of [{ completed: null }, { completed: 1 }, { title: null }, { title: '' }, 1]) {
    assert.equal((await change('PATCH', body)).status, 422, JSON.stringify(body));
  }
  assert.equal((await change('PATCH', {}, '"x"')).status, 412);
  assert.equal((await change('DELETE', undefined, '"x"')).status, 412);
  const json = await server.send('PATCH', path, { completed: true });
  assert.equal(json.status, 415);
  assert.equal((await change('DELETE')).status, 204);
  assert.deepEqual(await list(server), [first, third]);
  for (const method of ['GET', 'DELETE']) assert.equal((await change(method)).status, 404, method);
  assert.equal((await change('PATCH', {})).status, 404);
});
