/**
 * Serves files that are part of the build. A folder is read at the first request; from then on a
 * client's path is only a key of its files, never a path of the file system. They stay in memory:
 * the folder's size is the limit.
 *
 * A file named `name.gz` is the file `name`, stored compressed. Clients that accept gzip get it as
 * it is, others decompressed (RFC 9110 §8.4).
 */

import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError } from '../errors.ts';
import { createEtag } from './etag.ts';
import type { HttpResponse, HttpRequest } from './message.ts';

/** Returns the file of that name (`/` between folders) with its entity tag. Throws 404. */
type StaticFiles = (request: HttpRequest, name: string) => Promise<HttpResponse>;

interface File {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly packed: boolean;
}

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
 * when needed: loading `node:zlib` takes a tenth of the start.
 */
async function unpack(bytes: Buffer): Promise<Readable> {
  const { createGunzip } = await import('node:zlib');
  return createGunzip().end(bytes);
}

/**
 * Reads no file before the first request. `folder`: an absolute path; if it does not exist, there
 * are no files. `shared`: headers of every response, flat (name, value, name, value).
 */
export function createStaticFiles(folder: string, shared: readonly string[]): StaticFiles {
  const files = keepOnce(() => readFolder(folder));
  return async (request, name) => {
    const file = (await files()).get(name);
    if (file === undefined) throw noSuchFile();
    return toResponse(request, file, shared);
  };
}

/**
 * Serves the one file at this absolute path, which is read at the first request. `shared`: headers
 * of every response, flat.
 */
export function createStaticFile(
  path: string,
  shared: readonly string[] = [],
): (request: HttpRequest) => Promise<HttpResponse> {
  const read = keepOnce(() => readShipped(path, path));
  return async (request) => {
    const file = await read().catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? noSuchFile() : error;
    });
    return toResponse(request, file, shared);
  };
}

const noSuchFile = (): AppError => new AppError('not_found', 'There is no such file.');

async function toResponse(
  request: HttpRequest,
  { etag, type, bytes, packed }: File,
  shared: readonly string[],
): Promise<HttpResponse> {
  const headers = [...shared, 'ETag', etag, 'Vary', 'Accept-Encoding'];
  // Cached but revalidated each time, so that a new build is visible at once.
  headers.push('Cache-Control', 'no-cache', 'Content-Type', type);
  const takesBytes = !packed || takesGzip(request.header('accept-encoding'));
  if (packed && takesBytes) headers.push('Content-Encoding', 'gzip');
  const body = takesBytes ? bytes : await unpack(bytes);
  return { status: 200, headers, body, etag, streamBytesMax: unpackBytesMax };
}

/** Calls `act` once and shares its result. After a failure, the next call tries again. */
function keepOnce<T>(act: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  return () => {
    kept ??= act().catch((error: unknown) => {
      kept = undefined;
      throw error;
    });
    return kept;
  };
}

/** Returns all files under `folder` by their names in a URL. */
async function readFolder(folder: string): Promise<ReadonlyMap<string, File>> {
  const files = new Map<string, File>();
  const options = { recursive: true, withFileTypes: true } as const;
  // A build without the folder (by tsc alone) works without these files.
  for (const entry of await readdir(folder, options).catch(noneIfMissing)) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path).replaceAll(sep, '/').replace(/\.gz$/, '');
    files.set(name, await readShipped(name, path));
  }
  return files;
}

function noneIfMissing(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENOENT') return [];
  throw error;
}

/** The tag is weak: it is the same for compressed and plain content (RFC 9110 §8.8.3.3). */
async function readShipped(name: string, path: string): Promise<File> {
  const bytes = await readFile(path);
  const type = typeOf.get(extname(name)) ?? 'application/octet-stream';
  return { type, etag: `W/${createEtag(bytes)}`, bytes, packed: path.endsWith('.gz') };
}

/** RFC 9110 §12.5.3: true if gzip has a weight above 0, or `*` has one and gzip is absent. */
function takesGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  const takes = new Map<string, boolean>();
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((part) => part.trim());
    takes.set(coding, !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)));
  }
  return takes.get('gzip') ?? takes.get('x-gzip') ?? takes.get('*') ?? false;
}
