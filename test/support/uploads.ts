/** Stores of uploads in folders of their own, gone with the test. */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { codeOf } from '../../dist/errors.js';
import { openUploads as open, type OpenUploadsOptions } from '../../dist/store/files/open.js';
import { createMemoryRequests } from '../../dist/store/memory-requests.js';
import type { StoredFile } from '../../dist/store/file-index.js';
import type { Uploads } from '../../dist/store/files/uploads.js';

export async function createDirectory(context: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'uploads-test-'));
  context.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

type Bounds = Pick<OpenUploadsOptions, 'filesMax' | 'bytesMax'>;

/** In the folder of a run; the names on disk are numbers. */
export function createUploads(
  options: Pick<OpenUploadsOptions, 'directory'> & Partial<Bounds>,
): Promise<Uploads> {
  let names = 0;
  return open({
    filesMax: 100,
    bytesMax: 1_000_000_000,
    ...options,
    openIndex: undefined,
    requests: createMemoryRequests(),
    createName: () => String((names += 1)),
    log: () => undefined,
  });
}

/** `list` gives the names in the run's folder. */
export async function openUploads(context: TestContext, options: Partial<Bounds> = {}) {
  const directory = await createDirectory(context);
  const uploads = await createUploads({ directory, ...options });
  const [folder = ''] = await readdir(directory);
  return { directory, uploads, list: () => readdir(join(directory, folder)) };
}

/** Gives one chunk after the other. */
export function bytes(...chunks: readonly (Buffer | string)[]): AsyncIterable<readonly Buffer[]> {
  return Readable.from(chunks.map((chunk) => [Buffer.from(chunk as string)]));
}

/** Does it again, as clients do after a 503, where so many wait for the lock of the index that one gives up. */
export async function patiently<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (codeOf(error) !== 'overloaded') throw error;
    }
  }
}

export async function store(
  uploads: Uploads,
  contents: Readonly<Record<string, string>>,
): Promise<void> {
  const upload = uploads.begin();
  try {
    const written: StoredFile[] = [];
    for (const [name, content] of Object.entries(contents)) {
      written.push(await upload.write(name, bytes(content)));
    }
    await upload.commit(written);
  } finally {
    await upload.close();
  }
}

export async function readFile(
  uploads: Uploads,
  file: StoredFile,
  range?: { readonly start: number; readonly end: number },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of (await uploads.read(file, range)) ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function readAll(uploads: Uploads): Promise<(readonly [string, string])[]> {
  const found: (readonly [string, string])[] = [];
  for (const file of await uploads.list()) {
    found.push([file.storedName, (await readFile(uploads, file)).toString()]);
  }
  return found;
}
