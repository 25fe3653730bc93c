/** What a request for articles costs, whatever their shape: others are served beside it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonPatch, mergePatch } from '../support/articles.ts';
import { runProgram } from '../support/program.ts';

/** About as many values and names as a body may have. */
const values = 49_000;

let names = 0;
function name(): string {
  names += 1;
  return `n${names.toString(36)}`;
}

function list(length: number, item: (index: number) => string): string {
  return Array.from({ length: Math.floor(length) }, (_, index) => item(index)).join(',');
}

const shapes: Readonly<Record<string, () => string>> = {
  names: () => `{${list(values / 2, () => `"${name()}":1`)}}`,
  'objects of one name': () => `[${list(values / 3, () => `{"${name()}":1}`)}]`,
  'objects of names': () =>
    `[${list(values / 41, () => `{${list(20, () => `"${name()}":1.5`)}}`)}]`,
  'names like 1023': () => `[${list(values / 3, () => '{"1023":1}')}]`,
  'members like 1023': () => `{${list(values / 4, () => `"${name()}":{"1023":1}`)}}`,
  numbers: () => `[${list(values, () => '1')}]`,
};

test('others are served beside articles of every shape, in a small heap', async (t) => {
  const env = { MEMORY_STORE_BYTES_MAX: '100000000' };
  const flags = ['--max-old-space-size=160'];
  const program = await runProgram(t, { env, flags, measured: true });
  const { port } = await program.listening();
  const url = `http://127.0.0.1:${port}`;
  const send = async (path: string, type: string, body: string): Promise<number> => {
    const method = type === 'application/json' ? 'POST' : 'PATCH';
    const headers = { 'Content-Type': type };
    return (await fetch(`${url}${path}`, { method, headers, body })).status;
  };
  const assertServed = async (what: string): Promise<void> => {
    const { heldLoop } = await program.measure();
    t.diagnostic(`${what}: ${heldLoop} ms`);
    assert.ok(heldLoop < 1_000, `${what}: ${heldLoop} ms`);
  };
  const patch = (change: object) => send('/api/articles/1', jsonPatch, JSON.stringify([change]));
  for (const [what, shape] of Object.entries(shapes)) {
    const more = shape();
    const body = `{"id":1,"title":"a","x":0,"more":${more}}`;
    assert.equal(await send('/api/articles', 'application/json', body), 201, what);
    assert.equal(await patch({ op: 'replace', path: '/x', value: 1 }), 204, what);
    assert.equal(await patch({ op: 'remove', path: '/none' }), 409, what);
    for (const [merge, status] of [
      [`{"title":"b"}`, 204],
      [`{"more":${more}}`, 204],
      [`{"other":${more}}`, 413],
    ] as const) {
      assert.equal(await send('/api/articles/1', mergePatch, merge), status, what);
    }
    const all = JSON.stringify([{ op: 'test', path: '/0/title', value: 'b' }]);
    assert.equal(await send('/api/articles', jsonPatch, all), 204, what);
    assert.equal((await fetch(`${url}/api/articles`, { method: 'HEAD' })).status, 200, what);
    await assertServed(what);
  }
  const numbers = `{"id":1,"title":"a","x":[${list(values, () => '1')}]}`;
  assert.equal(await send('/api/articles', 'application/json', numbers), 201);
  const removals = `[${list(1_000, () => '{"op":"remove","path":"/x/0"}')}]`;
  assert.equal(await send('/api/articles/1', jsonPatch, removals), 204);
  await assertServed('removals');
});
