/** A process that is killed, at any moment: the next one starts, and nothing is left of the dead. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { type Program, runProgram } from './support/program.ts';
import { connectRaw } from './support/raw-client.ts';
import { until } from './support/until.ts';

const part = 'Content-Disposition: form-data; name="part"; filename="dead.txt"';
const head = `--frontier\r\n${part}\r\n\r\n`;
const end = '\r\n--frontier--\r\n';
const size = 3_000_000;

/** The head of an upload of one large file, and its body up to `bytes` of it. */
async function upload(t: TestContext, port: number, bytes: number): Promise<void> {
  const client = await connectRaw(t, port);
  const body = Buffer.concat([Buffer.from(head), Buffer.alloc(size, 'x'), Buffer.from(end)]);
  client.send([
    'POST /api/multiparts/simple HTTP/1.1',
    'Host: a',
    'Content-Type: multipart/form-data; boundary=frontier',
    `Content-Length: ${body.length}`,
  ]);
  client.socket.write(body.subarray(0, bytes));
  if (bytes >= body.length) assert.equal((await client.response()).status, 200);
}

const ready = async (program: Program): Promise<number> => (await program.listening()).port;

const moments: Readonly<Record<string, (program: Program, t: TestContext) => Promise<unknown>>> = {
  'before it listens': ({ child }) => once(child, 'spawn'),
  'once it listens': ready,
  'while a file arrives': async (program, t) => {
    await upload(t, await ready(program), size / 2);
    await findFiles(program);
  },
  'once a file is stored': async (program, t) => upload(t, await ready(program), Infinity),
  'while a file is downloaded': async (program, t) => {
    const port = await ready(program);
    await upload(t, port, Infinity);
    const client = await connectRaw(t, port);
    client.send(['GET /api/multiparts HTTP/1.1', 'Host: a']);
    await once(client.socket, 'data');
  },
  'while it stops': async (program, t) => {
    await upload(t, await ready(program), size / 2);
    program.child.kill('SIGTERM');
    await until('the stop', () => program.output().includes('"stopping"'));
  },
};

/** Waits until the run has files. */
async function findFiles({ folder }: Program): Promise<void> {
  await until('a file', async () => {
    const names = await readdir(folder, { recursive: true });
    return names.some((name) => name.endsWith('.upload'));
  });
}

test('after a kill at any moment the next run starts clean', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-killed-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const [when, reach] of Object.entries(moments)) {
    const program = await runProgram(t, { folder });
    await reach(program, t);
    program.child.kill('SIGKILL');
    await program.ended();
    // The folder of a run that nobody has touched for a day is garbage (R18).
    const [left = ''] = await readdir(folder);
    const before = new Date(Date.now() - 25 * 3_600_000);
    await utimes(join(folder, left), before, before);

    const next = await runProgram(t, { folder });
    const { port } = await next.listening();
    const response = await (await fetch(`http://127.0.0.1:${port}/api/multiparts`)).formData();
    assert.deepEqual([...response.keys()], ['abd'], when);
    const [own = '', ...others] = await readdir(folder);
    assert.deepEqual(others, [], when);
    assert.deepEqual(await readdir(join(folder, own)), [], when);
    next.child.kill('SIGTERM');
    assert.equal((await next.ended()).code, 0, when);
    assert.deepEqual(await readdir(folder), [], when);
  }
});
