/** The examples, as their README starts them; the page is opened twice from another port. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { noBrowser, openBrowser, patienceMs } from './support/browser.ts';
import { startServer } from './support/server.ts';
import { projectFolder } from './support/source.ts';
import { readClaims } from './support/tokens.ts';
import { noShell } from './support/shell.ts';

test('the script sees the comment that it adds', { skip: noShell }, async (context) => {
  const server = await startServer(context);
  const script = join(projectFolder, 'examples', 'shell', 'comments.sh');
  const { stdout, stderr } = await promisify(execFile)('bash', [script, server.url]);
  assert.match(stdout, /^post: \/posts\/[0-9a-f-]{36}\ncomment: \{"data".*Seen by the script/);
  assert.equal(stderr, '');
});

test('a post is created, read and changed with fetch', async (context) => {
  const server = await startServer(context);
  const program = join(projectFolder, 'examples', 'clients', 'post.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [program, server.url]);
  assert.equal(stdout, '204\n');
});

test('the clients refresh their token, and log in again when the session has ended', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_000 });
  const server = await startServer(t, { env: { SESSION_SECONDS_MAX: '100' } });
  const { argv } = process;
  t.after(() => (process.argv = argv));
  process.argv = [...argv.slice(0, 2), server.url];
  const program = join(projectFolder, 'examples', 'clients', 'login.mjs');
  const { getToken, fetchAsUser } = (await import(pathToFileURL(program).href)) as {
    readonly getToken: () => Promise<string>;
    readonly fetchAsUser: typeof fetch;
  };
  const seen: unknown[] = [];
  for (const seconds of [0, 29, 2, 50, 40]) {
    t.mock.timers.tick(seconds * 1000);
    const { auth_time: login, iat } = readClaims(await getToken());
    seen.push([login, iat].map((time) => Number(time) - 1_800_000_000));
    assert.equal((await fetchAsUser(`${server.url}/profile`)).status, 200);
  }
  // Made at the start, after 31 and 81 seconds, and by another login after 121.
  assert.deepEqual(seen, [
    [0, 0],
    [0, 0],
    [0, 31],
    [0, 81],
    [121, 121],
  ]);
});

test('the client in TypeScript is typed by the server, compiles and runs', async (context) => {
  const server = await startServer(context);
  const cwd = await mkdtemp(join(tmpdir(), 'inkwell-example-'));
  context.after(() => rm(cwd, { recursive: true, force: true }));
  await cp(join(projectFolder, 'examples', 'typescript'), cwd, { recursive: true });
  await symlink(join(projectFolder, 'node_modules'), join(cwd, 'node_modules'));
  const run = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, args, { cwd })).stdout;

  await run('generate.mjs', server.url);
  const tsc = join(projectFolder, 'node_modules', 'typescript', 'bin', 'tsc');
  assert.equal(await run(tsc, '-p', '.'), '');
  const printed = await run(join('generated', 'client.js'), server.url);
  assert.match(printed, /^TYPED \[ 'No cast needed\.' \]\nHELLO/);
});

const types = new Map([
  ['.html', 'text/html'],
  ['.js', 'text/javascript'],
]);

test('a page on another port lists, comments and watches', { skip: noBrowser }, async (context) => {
  const files = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    const name = pathname === '/' ? 'index.html' : pathname.slice(1);
    response.setHeader('Content-Type', types.get(extname(name)) ?? 'text/plain');
    createReadStream(join(projectFolder, 'examples', 'page', name))
      .on('error', () => response.writeHead(404).end())
      .pipe(response);
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  context.after(() => files.close());
  const origin = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const server = await startServer(context, { env: { ALLOWED_ORIGINS: origin } });
  const browser = await openBrowser();
  context.after(() => browser.close());

  const open = async (): Promise<Page> => {
    const page = await browser.newPage();
    page.setDefaultTimeout(patienceMs);
    await page.goto(`${origin}/?server=${server.url}`);
    await page.getByText(`Connected to ${server.url}`).waitFor();
    return page;
  };
  const [mine, other] = [await open(), await open()];
  assert.equal(await mine.locator('article').count(), 3);

  await mine.getByPlaceholder('A comment').first().fill('Said <b>across</b> origins.');
  await mine.getByRole('button', { name: 'Add' }).first().click();
  for (const page of [mine, other]) {
    const comment = page.getByText('Said <b>across</b> origins.', { exact: true });
    await comment.waitFor();
    assert.equal(await comment.count(), 1);
  }
});
