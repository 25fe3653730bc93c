/**
 * A blog of some size moved from database to database (R50): 100,000 posts with 400,000 comments,
 * and files up to 20 MB. TRANSFER_POSTS asks for more of them.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream, openSync, readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished, pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { durableStores } from '../support/stores.ts';
import { newPlace, oddTexts, type Place } from '../support/transfer.ts';
import { createDirectory } from '../support/uploads.ts';

const program = fileURLToPath(new URL('../../dist/server.js', import.meta.url));
const posts = Number(process.env['TRANSFER_POSTS'] ?? 100_000);
const commentsEach = 4;
const kills = 6;
/** Bytes of the largest file. */
const large = 20_000_000;
/** Of a process, whatever the size of the store: 150, and what V8 leaves on a busy machine. */
const memoryMax = 180;

const createdAt = '2024-05-01T10:15:00';
const [head, end] = ['{"format":"inkwell","version":1,"articleCounter":7}', '{"kind":"end"}'];
const emptyLines = 2;

function idOf(kind: string, at: number): string {
  const digest = createHash('sha1').update(`${kind} ${at}`).digest('hex');
  const time = (1_600_000_000_000 + at).toString(16).padStart(12, '0');
  return [time.slice(0, 8), time.slice(8), `7${digest.slice(0, 3)}`, `8${digest.slice(3, 6)}`]
    .concat(digest.slice(6, 18))
    .join('-');
}

/** An export, as another store would have written it. */
function* writeLines(): Generator<string> {
  yield head;
  for (const size of [0, 1, 49_152, 1_000_000, large]) {
    yield JSON.stringify({ kind: 'file', name: `${size}.bin`, size });
    for (let left = size; left > 0; left -= 49_152) {
      const base64 = randomBytes(Math.min(left, 49_152)).toString('base64');
      yield JSON.stringify({ kind: 'content', base64 });
    }
  }
  for (let at = 0; at < posts; at += 1) {
    const odd = oddTexts[at % oddTexts.length] ?? '';
    const [title, content] = [`post ${at} ${odd}`, `${odd} ${'x'.repeat(at % 300)}`];
    // One in a thousand is long.
    const long = at % 1_000 === 0 ? content.padEnd(200_000, 'long') : content;
    const isPublished = at % 7 !== 0;
    const status = isPublished ? 'PUBLISHED' : 'DRAFT';
    const dates = { createdAt, ...(isPublished && { publishedAt: createdAt }) };
    yield JSON.stringify({
      kind: 'post',
      id: idOf('post', at),
      title,
      content: long,
      status,
      ...dates,
    });
  }
  // Some wait: they come first.
  for (const status of ['PENDING', undefined]) {
    for (let at = 0; at < posts * commentsEach; at += 1) {
      if ((at % 9 === 0) !== (status === 'PENDING')) continue;
      const [id, postId] = [idOf('comment', at), idOf('post', (at * 7) % posts)];
      const content = `${at} ${oddTexts[at % oddTexts.length]}`;
      yield JSON.stringify({ kind: 'comment', id, postId, content, createdAt, status });
    }
  }
  yield end;
}

interface Streams {
  readonly place: Place;
  readonly from?: string;
  readonly to?: string;
}

function start(name: string, { place, from, to }: Streams) {
  const input = from === undefined ? 'ignore' : openSync(from, 'r');
  const output = to === undefined ? 'pipe' : openSync(to, 'w');
  const env = { ...place, NODE_OPTIONS: '--disable-warning=ExperimentalWarning' };
  return spawn(process.execPath, [program, name], { env, stdio: [input, output, 'inherit'] });
}

/** Resolves with what it took, and what it said. */
async function run(t: TestContext, name: string, streams: Streams): Promise<string> {
  const startedAt = performance.now();
  const child = start(name, streams);
  let memory = 0;
  const timer = setInterval(() => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    memory = Math.max(memory, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  }, 20);
  let said = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = (await once(child, 'close').finally(() => clearInterval(timer))) as [number];
  const seconds = (performance.now() - startedAt) / 1000;
  t.diagnostic(`${name}: ${seconds.toFixed(1)} s, ${memory.toFixed(0)} MiB`);
  assert.equal(code, 0);
  assert.ok(memory < memoryMax, `${memory} MiB`);
  return said;
}

async function digestOf(file: string): Promise<string> {
  const digest = createHash('sha256');
  await pipeline(createReadStream(file), digest);
  return digest.digest('hex');
}

async function countLines(place: Place, to: string): Promise<number> {
  await once(start('export', { place, to }), 'close');
  return readFileSync(to, 'utf8').trim().split('\n').length;
}

for (const [at, store] of durableStores.entries()) {
  const next = durableStores[(at + 1) % durableStores.length] ?? store;
  const skip = process.platform !== 'linux' ? 'there is no /proc' : store.skip || next.skip;
  test(`a large blog ${store.name}, moved to one ${next.name}`, { skip }, async (t) => {
    const folder = await createDirectory(t);
    const [given, first, second] = ['given', 'first', 'second'].map((name) => join(folder, name));
    if (given === undefined || first === undefined || second === undefined) return;
    const output = createWriteStream(given);
    for (const line of writeLines()) if (!output.write(`${line}\n`)) await once(output, 'drain');
    output.end();
    await finished(output);
    const records = posts * (1 + commentsEach) + 5;
    const [place, other] = [await newPlace(t, store), await newPlace(t, next)];

    // It makes the tables.
    await writeFile(first, `${head}\n${end}\n`);
    await run(t, 'import', { place, from: first });
    const startedAt = performance.now();
    for (let kill = 0; kill < kills; kill += 1) {
      const child = start('import', { place, from: given });
      await pause(randomInt(100, 8_000));
      child.kill('SIGKILL');
      const [code] = (await once(child, 'close')) as [number | null];
      if (code === 0) break; // It was faster.
      assert.equal(await countLines(place, first), emptyLines);
    }
    t.diagnostic(`kills: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
    const said = await run(t, 'import', { place, from: given });
    assert.match(said, new RegExp(`^Stored (?:${records} records; 0|0 records; ${records}) were`));
    await run(t, 'export', { place, to: first });
    assert.equal(await digestOf(first), await digestOf(given));
    assert.match(
      await run(t, 'import', { place: other, from: first }),
      new RegExp(`^Stored ${records} `),
    );
    await run(t, 'export', { place: other, to: second });
    assert.equal(await digestOf(second), await digestOf(given));
    assert.match(await run(t, 'import', { place: other, from: given }), /^Stored 0 records/);
    const names = await readdir(join(other.UPLOAD_DIR, 'inkwell-files'));
    assert.equal(names.filter((name) => name.endsWith('.upload')).length, 5);
  });
}
