import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { AppError } from '../../dist/errors.js';
import type { HttpResponse, HttpRequest } from '../../dist/http/message.js';
import { toConditional } from '../../dist/http/etag.js';
import { createStaticFiles } from '../../dist/http/static-files.js';

const text = 'let words = 1;\n'.repeat(100);

function requestWith(headers: Record<string, string> = {}): HttpRequest {
  const given = new Map(Object.entries(headers));
  return { method: 'GET', header: (name: string) => given.get(name) } as HttpRequest;
}

function headerOf(response: HttpResponse, name: string): string | undefined {
  const at = response.headers.indexOf(name);
  return at === -1 ? undefined : response.headers[at + 1];
}

function textOf(response: HttpResponse): string {
  assert.ok(Buffer.isBuffer(response.body));
  return response.body.toString();
}

const isNotFound = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'not_found';

const parent = await mkdtemp(join(tmpdir(), 'inkwell-static-'));
const folder = join(parent, 'shipped');

describe('static files', () => {
  const files = () => createStaticFiles(folder, ['X-Test', 'yes']).serve;

  before(async () => {
    await mkdir(join(folder, 'deep', 'er'), { recursive: true });
    await writeFile(join(parent, 'secret.txt'), 'secret');
    await writeFile(join(folder, 'app.js.gz'), gzipSync(text));
    await writeFile(join(folder, 'deep', 'er', 'logo.png'), 'not really');
  });

  after(() => rm(parent, { recursive: true, force: true }));

  it('sends a file with its type, its tag and the headers of the endpoint', async () => {
    const response = await files()(requestWith(), 'deep/er/logo.png');
    assert.equal(response.status, 200);
    assert.equal(textOf(response), 'not really');
    assert.equal(headerOf(response, 'Content-Type'), 'image/png');
    assert.equal(headerOf(response, 'Cache-Control'), 'no-cache');
    assert.match(headerOf(response, 'ETag') ?? '', /^W\/"[\w-]{22}"$/);
  });

  it('has no files without a folder, and looks again after one that could not be read', async () => {
    const missing = createStaticFiles(join(folder, 'missing'), []).serve;
    await assert.rejects(missing(requestWith(), 'index.html'), isNotFound);
    const flaky = join(parent, 'flaky');
    await writeFile(flaky, 'not a folder');
    const endpoint = createStaticFiles(flaky, []).serve;
    await assert.rejects(endpoint(requestWith(), 'a.txt'), { code: 'ENOTDIR' });
    await rm(flaky);
    await mkdir(flaky);
    await writeFile(join(flaky, 'a.xyz'), 'again');
    const response = await endpoint(requestWith(), 'a.xyz');
    assert.equal(headerOf(response, 'Content-Type'), 'application/octet-stream');
  });

  it('says nothing of content with 304, and closes what would have been sent', () => {
    const body = Readable.from('x');
    const headers = ['Content-Type', 'a/b', 'Content-Encoding', 'gzip', 'Vary', 'Origin'];
    const found = { status: 200, headers, etag: '"a"', body };
    const response = toConditional(found, requestWith({ 'if-none-match': '"a"' }));
    assert.deepEqual([response.status, response.headers], [304, ['Vary', 'Origin']]);
    assert.ok(body.destroyed);
  });

  it('sends a packed text packed to those who take gzip and plain to all others', async () => {
    const taking = ['gzip', 'br;q=1.0, GZIP;q=0.5', '*', 'x-gzip'];
    const endpoint = files();
    const others = [undefined, '', 'br', 'gzip;q=0', 'gzip; q=0.000, *', '*;q=0'];
    for (const accept of [...taking, ...others]) {
      const packed = taking.includes(accept ?? '');
      const request = requestWith(accept === undefined ? {} : { 'accept-encoding': accept });
      const response = await endpoint(request, 'app.js');
      assert.equal(Buffer.isBuffer(response.body), packed, accept);
      assert.equal(response.streamBytesMax, 131_072, accept);
      const bytes = Buffer.isBuffer(response.body)
        ? response.body
        : await buffer(response.body as Readable);
      assert.equal(headerOf(response, 'Content-Encoding'), packed ? 'gzip' : undefined, accept);
      assert.equal((packed ? gunzipSync(bytes) : bytes).toString(), text, accept);
      assert.equal(headerOf(response, 'Content-Type'), 'text/javascript; charset=utf-8', accept);
      assert.equal(headerOf(response, 'Vary'), 'Accept-Encoding', accept);
    }
  });

  it('answers 304 to a client that holds the same file, and 200 to all others', async () => {
    const endpoint = files();
    const etag = headerOf(await endpoint(requestWith(), 'app.js'), 'ETag') ?? '';
    const behind = (count: number): string => `${'"other", '.repeat(count)}${etag}`;
    for (const held of [etag, etag.slice(2), etag.slice(3, -1), behind(31), '*']) {
      const request = requestWith({ 'if-none-match': held });
      const response = toConditional(await endpoint(request, 'app.js'), request);
      assert.equal(response.status, 304, held);
      assert.equal(response.body, undefined, held);
      assert.equal(headerOf(response, 'ETag'), etag, held);
      assert.equal(headerOf(response, 'X-Test'), 'yes', held);
    }
    for (const held of ['"other"', '', 'W/"', etag.slice(3, -2), behind(32)]) {
      const request = requestWith({ 'if-none-match': held });
      assert.equal(toConditional(await endpoint(request, 'app.js'), request).status, 200, held);
    }
  });

  it('knows no name but the shipped ones, whatever a name looks like', async () => {
    const endpoint = files();
    const names = ['', '.', '..', '../secret.txt', 'deep/../../secret.txt', '/app.js', 'deep'];
    names.push('deep/er/', 'app.js.gz', 'APP.JS', 'app%2ejs', 'deep%2Fer/logo.png', 'app.js\0');
    names.push('deep\\er\\logo.png', '__proto__', 'constructor', '//secret.txt');
    names.push(join(folder, 'app.js'));
    for (const name of names) await assert.rejects(endpoint(requestWith(), name), isNotFound, name);
  });
});
