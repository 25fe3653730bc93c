/** What the API reference says of no operation by itself has the form of its `default`. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askEntry, assertValid, entries, type Entry, escape } from '../support/reference.ts';
import { startServer } from '../support/server.ts';

async function checkDefault(entry: Entry, response: Response, code: string): Promise<void> {
  const at = `${entry.name} ${code}`;
  assert.equal(response.headers.get('content-type'), 'application/problem+json', at);
  const problem = (await response.json()) as { readonly code: string; readonly status: number };
  assert.deepEqual([problem.code, problem.status], [code, response.status], at);
  const responses = `paths/${escape(entry.path)}/${entry.method.toLowerCase()}/responses`;
  assertValid(problem, `${responses}/default/content/${escape('application/problem+json')}`, at);
}

test('a method that no path has, and a target that is too long', async (t) => {
  const server = await startServer(t);
  for (const entry of entries) {
    const params = { id: '1', name: 'a' };
    const unknown = { ...entry, method: 'PROPFIND' };
    await checkDefault(entry, await askEntry(server, unknown, { params }), 'not_implemented');
    const query = 'x'.repeat(10_000);
    await checkDefault(entry, await askEntry(server, entry, { params, query }), 'target_too_long');
  }
});

test('a store that is full', async (t) => {
  const server = await startServer(t, { env: { MEMORY_STORE_BYTES_MAX: '1048576' } });
  const [post] = (await (await server.fetch('/posts')).json()) as [{ readonly id: string }];
  for (let status = 201; status === 201;) {
    ({ status } = await server.send('POST', '/api/todos', { title: 'x'.repeat(50_000) }));
  }
  const content = 'x'.repeat(60_000);
  const body = JSON.stringify({ title: content, content });
  const creating = entries.filter(({ name }) =>
    /^POST (?:\/posts|\/api\/(?:todos|art))/.test(name),
  );
  assert.equal(creating.length, 4);
  for (const entry of creating) {
    const response = await askEntry(server, entry, { params: { id: post.id }, body });
    await checkDefault(entry, response, 'storage_full');
  }
});
