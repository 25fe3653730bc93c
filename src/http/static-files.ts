/**
 * Serves files that are part of the build. All are read at once, after the start or at the first
 * request, and stay in memory (2.4 MiB of the service's own), so that the folder may be replaced. A
 * client's path is only a key of the list, never a path of the file system.
 *
 * A file named `name.gz` is the file `name`, stored compressed. Clients that accept gzip get it as
 * it is, others decompressed (RFC 9110 §8.4).
 */

import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { createEtag } from './etag.ts';
import { listMembers } from './list-header.ts';
import { addVary, type HttpResponse, type HttpRequest } from './message.ts';

type StaticFile = ReturnType<typeof createStaticFile>;

/** The media types that browsers need; `nosniff` prevents guessing. */
const typeOf: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/json; charset=utf-8'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
  ['.ico', 'image/x-icon'],
  ['.woff', 'font/woff'],
  ['.woff2', 'font/woff2'],
]);

/** Memory of a decompression, in bytes: its window, and two chunks. */
const unpackBytesMax = 128 * 1024;

/**
 * Decompresses only as fast as the client reads, because the text is five times as long. Loaded
 * after the start, of which loading `node:zlib` takes a tenth.
 */
async function unpack(bytes: Buffer): Promise<Readable> {
  const { createGunzip } = await import('node:zlib');
  return createGunzip().end(bytes);
}

/**
 * Serves the files of a folder by their names (`/` between folders); throws 404 for others.
 * `folder`: an absolute path; if it does not exist, there are no files. `shared`: headers of every
 * response, flat (name, value, name, value).
 */
export function createStaticFiles(folder: string, shared: readonly string[]) {
  const load = once(async () => {
    const files = await findFiles(folder, shared);
    for (const file of files.values()) await file.load();
    return files;
  });
  return {
    load,
    async serve(request: HttpRequest, name: string): Promise<HttpResponse> {
      const file = (await load()).get(name);
      if (file === undefined) throw noSuchFile();
      return file.serve(request);
    },
  };
}

/** Serves the one file at this absolute path; throws 404 if there is none. `shared`: as above. */
export function createStaticFile(path: string, shared: readonly string[] = []) {
  const load = once(() => readShipped(path));
  const isPacked = path.endsWith('.gz');
  const type = typeOf.get(extname(path.replace(/\.gz$/, ''))) ?? 'application/octet-stream';
  const serve = async (request: HttpRequest): Promise<HttpResponse> => {
    const { bytes, etag } = await load();
    const headers = [...shared, 'ETag', etag];
    addVary(headers, 'Accept-Encoding');
    // Cached but revalidated each time, so that a new build is visible at once.
    headers.push('Cache-Control', 'no-cache', 'Content-Type', type);
    const takesBytes = !isPacked || takesGzip(request.header('accept-encoding'));
    if (isPacked && takesBytes) headers.push('Content-Encoding', 'gzip');
    const body = takesBytes ? bytes : await unpack(bytes);
    return { status: 200, headers, body, etag, streamBytesMax: unpackBytesMax };
  };
  return { load, serve };
}

const noSuchFile = (): AppError => new AppError('not_found', 'There is no such file.');

/** Calls `act` once and shares its result. After a failure, the next call tries again. */
function once<T>(act: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () =>
    (result ??= act().catch((error: unknown) => {
      result = undefined;
      throw error;
    }));
}

async function findFiles(
  folder: string,
  shared: readonly string[],
): Promise<ReadonlyMap<string, StaticFile>> {
  const options = { recursive: true, withFileTypes: true } as const;
  // A build without the folder (by tsc alone) works without these files.
  const entries = await readdir(folder, options).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const paths = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const toName = (path: string): string =>
    relative(folder, path).replaceAll(sep, '/').replace(/\.gz$/, '');
  return new Map(paths.map((path) => [toName(path), createStaticFile(path, shared)]));
}

/** The tag is weak: it is the same for compressed and plain content (RFC 9110 §8.8.3.3). */
async function readShipped(
  path: string,
): Promise<{ readonly bytes: Buffer; readonly etag: string }> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? noSuchFile() : error;
  });
  return { bytes, etag: `W/${createEtag(bytes)}` };
}

/** RFC 9110 §12.5.3: true if gzip has a weight above 0, or `*` has one and gzip is absent. */
function takesGzip(acceptEncoding = ''): boolean {
  const codings = listMembers(acceptEncoding.toLowerCase().replaceAll(/[ \t]/g, ''));
  const find = (name: string): string | undefined =>
    codings.find((coding) => coding === name || coding.startsWith(`${name};`));
  const coding = find('gzip') ?? find('x-gzip') ?? find('*');
  return coding !== undefined && !/;q=0(?:\.0*)?(?:;|$)/.test(coding);
}
