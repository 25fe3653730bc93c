import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isLong } from '../support/long.ts';
import { startServer } from '../support/server.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

/** Public test data that lies beside the project where somebody has put it. */
const suites = '../shared/suites';

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const parsing = join(suites, 'JSONTestSuite/test_parsing');
const documents = namesIn(parsing);
const absent = documents.length === 0 && `no data at ${parsing}`;
const json = 'application/json';
const demoPost = '/posts/019b8d5e-9c00-7000-8000-000000000101';
const doors = [
  ['POST', '/graphql', json],
  ['POST', '/posts', json],
  ['PUT', demoPost, json],
  ['POST', `${demoPost}/comments`, json],
  ['POST', '/auth/login', json],
  ['POST', '/api/todos', json],
  ['POST', '/api/articles', json],
  ['PATCH', '/api/articles', 'application/json-patch+json'],
  ['PATCH', '/api/articles/1', 'application/json-patch+json'],
  ['PATCH', '/api/articles/2', 'application/merge-patch+json'],
] as const;

test('JSONTestSuite: what is not JSON is 400, what is JSON is never a failure', async (t) => {
  if (absent !== false) return t.skip(absent);
  const server = await startServer(t);
  const counts = { y: 0, n: 0, i: 0 };
  for (const [at, name] of documents.entries()) {
    const kind = name.slice(0, 1) as keyof typeof counts; // y, n or i, by the suite's README
    counts[kind] += 1;
    const body = readFileSync(join(parsing, name));
    // At length each document goes to all doors, else to one of them in turn.
    const own = isLong ? doors : doors.slice(at % doors.length).slice(0, 1);
    for (const [method, path, type] of own) {
      const headers = { 'Content-Type': type };
      const { status } = await server.fetch(path, { method, headers, body });
      if (kind === 'n') assert.equal(status, 400, `${path} ${name}`);
      else assert.ok(status < 500, `${path} ${name}: ${status}`);
    }
  }
  assert.deepEqual(counts, { y: 95, n: 188, i: 35 });
  assert.deepEqual(
    server.logged.filter(({ level }) => level === 'error'),
    [],
  );
});

test('naughty strings come back exactly, or are refused for being blank', async (t) => {
  const file = join(suites, 'blns/blns.json');
  if (!namesIn(join(suites, 'blns')).includes('blns.json')) return t.skip(`no data at ${file}`);
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[];
  const strings = all.filter((_, at) => isLong || at % 4 === 0);
  const server = await startServer(t);
  const check = async (text: string): Promise<void> => {
    const created = await server.send('POST', '/posts', { title: text, content: text });
    if (text.trim() === '') {
      assert.equal(created.status, 422, JSON.stringify(text));
      return;
    }
    assert.equal(created.status, 201, JSON.stringify(text));
    const location = created.headers.get('location') ?? '';
    const post = (await (await server.fetch(location)).json()) as Record<string, string>;
    assert.deepEqual([post['title'], post['content']], [text, text]);
    await server.send('POST', `${location}/comments`, { content: text });
    const comments = (await (await server.fetch(`${location}/comments`)).json()) as unknown[];
    assert.equal((comments[0] as { content: string }).content, text);
    // As a path they name nothing, and break nothing.
    const named = await server.fetch(`/posts/${encodeURIComponent(text.toWellFormed())}`);
    assert.equal(named.status, 404);
  };
  for (let at = 0; at < strings.length; at += 32) {
    await Promise.all(strings.slice(at, at + 32).map(check));
  }
  for (const title of strings) await server.send('POST', '/api/todos', { title });
  const todos = (await (await server.fetch('/api/todos')).json()) as { title: string }[];
  assert.deepEqual(
    todos.slice(3).map(({ title }) => title),
    strings.filter((text) => text.trim() !== ''),
  );
});
