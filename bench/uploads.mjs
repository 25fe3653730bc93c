/**
 * `node bench/uploads.mjs`: what it costs that uploaded files outlive the process, beside the
 * folder of a run. Build the program and its tests first (`npm test` does). SQLite needs Node
 * 22.13, PostgreSQL its binaries; what is missing is left out.
 *
 * Options: --folder /var/tmp (on the disk to be measured), --uploads 200, --files 10000.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { driverOptions } from '#support/driver-options.js';
import { skipPostgres, startPostgres } from '#support/postgres.js';
import { skipSqlite } from '#support/sqlite.js';
import { bytes } from '#support/uploads.js';
import { openUploads } from '../dist/store/files/open.js';
import { createMemoryRequests } from '../dist/store/memory-requests.js';
import { openStore } from '../dist/store/open.js';
import { begin } from './report.mjs';

const { options, report } = begin({ folder: '/var/tmp', uploads: 200, files: 10_000 });
const { uploads: count, files } = options;
const { createId: createName, log } = driverOptions();
const bytesMax = Number.MAX_SAFE_INTEGER;
const shared = { bytesMax, filesMax: files + 4 * count + 1, createName, log };

const tell = report.table(`Milliseconds, ${count} uploads of each kind`, ['index', 'work', 'ms']);
await inFolder(async (directory) => {
  const requests = createMemoryRequests();
  const uploads = await openUploads({ directory, ...shared, openIndex: undefined, requests });
  // Until the code is warm and the disk is busy.
  for (let at = 0; at < count; at += 1) await store(uploads, 'warm', Buffer.alloc(1024 * 1024));
  await measure('folder of the run', uploads);
  await uploads.close();
});
if (skipSqlite === false) {
  await inFolder((directory) => durable('SQLite', directory, `sqlite://${directory}/index.db`));
}
if (skipPostgres === false) {
  const server = await startPostgres([]);
  try {
    const url = await server.createDatabase();
    await inFolder((directory) => durable('PostgreSQL', directory, url));
  } finally {
    await server.remove();
  }
}
report.end();

async function inFolder(work) {
  const directory = await mkdtemp(join(options.folder, 'inkwell-bench-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function durable(name, directory, url) {
  const records = await openStore(url, driverOptions());
  const { openFileIndex: openIndex, requests } = records;
  const open = () => openUploads({ directory, ...shared, openIndex, requests });
  const uploads = await open();
  await measure(name, uploads);
  for (let stored = 0; stored < files; stored += 1_000) {
    await storeMany(uploads, stored, Math.min(stored + 1_000, files));
  }
  await uploads.close();
  const started = performance.now();
  const next = await open();
  tell(name, 'opened', performance.now() - started);
  await next.sweep();
  tell(name, 'and swept', performance.now() - started);
  tell(name, `list of ${files}`, await timed(async () => await next.list()));
  const last = await timed(() => store(next, 'last', Buffer.from('x')));
  tell(name, `upload beside ${files}`, last);
  await next.close();
  await records.close();
}

async function storeMany(uploads, first, end) {
  const upload = uploads.begin();
  /** @type {Awaited<ReturnType<typeof upload.write>>[]} */
  const written = [];
  for (let at = first; at < end; at += 1) {
    written.push(await upload.write(`file ${at}`, bytes('x')));
  }
  await upload.commit(written);
  await upload.close();
}

async function measure(name, uploads) {
  for (const [label, size] of Object.entries({ '1 KiB': 1024, '1 MiB': 1024 * 1024 })) {
    const content = Buffer.alloc(size, 'x');
    const times = [];
    for (let at = 0; at < count; at += 1) {
      times.push(await timed(() => store(uploads, `${label} ${at}`, content)));
    }
    tell(name, `${label}, one after the other`, times.toSorted((a, b) => a - b)[count >> 1]);
    const all = Array.from({ length: count }, (_, at) => () => {
      return store(uploads, `${label} at once ${at}`, content);
    });
    tell(
      name,
      `${label}, all at once`,
      (await timed(() => Promise.all(all.map((one) => one())))) / count,
    );
  }
}

async function store(uploads, name, content) {
  const upload = uploads.begin();
  await upload.commit([await upload.write(name, bytes(content))]);
  await upload.close();
}

async function timed(work) {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
