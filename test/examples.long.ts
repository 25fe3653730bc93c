/** The examples, as their README starts them; the page is opened twice from another port. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { noBrowser, openBrowser, patienceMs } from './support/browser.ts';
import { startServer } from './support/server.ts';
import { projectFolder } from './support/source.ts';
import { readClaims } from './support/tokens.ts';
import { noShell } from './support/shell.ts';

// With `members` a new post, which is a draft, is read and written with the token of its author alone.
for (const mode of ['none', 'members']) {
  test(`the script sees the comment that it adds: ${mode}`, { skip: noShell }, async (context) => {
    const server = await startServer(context, { env: { REQUIRE_AUTH: mode } });
    const script = join(projectFolder, 'examples', 'shell', 'comments.sh');
    const { stdout, stderr } = await promisify(execFile)('bash', [script, server.url]);
    assert.match(stdout, /^post: \/posts\/[0-9a-f-]{36}\ncomment: \{"data".*Seen by the script/);
    assert.equal(stderr, '');
  });

  test(`a post is created, read and changed with fetch: ${mode}`, async (context) => {
    const server = await startServer(context, { env: { REQUIRE_AUTH: mode } });
    const program = join(projectFolder, 'examples', 'clients', 'post.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [program, server.url]);
    assert.equal(stdout, '204\n');
  });
}

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
    assert.equal((await fetchAsUser(`${server.url}/profile`)).status, 200, `${seconds}`);
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

/** A browser, and the address of the page, which stands on another port than the server. */
async function startPage(context: TestContext) {
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
  const env = { ALLOWED_ORIGINS: origin };
  const server = await startServer(context, { env });
  const browser = await openBrowser();
  context.after(() => browser.close());

  const open = async (): Promise<Page> => {
    const page = await browser.newPage();
    page.setDefaultTimeout(patienceMs);
    await page.goto(`${origin}/?server=${server.url}`);
    await page.getByText(`Connected to ${server.url}`).waitFor();
    return page;
  };
  return { env, server, open };
}

const comments = (id: string): string => `/posts/${id}/comments`;

test('a page on another port lists, comments and watches', { skip: noBrowser }, async (context) => {
  const { server, open } = await startPage(context);
  const [mine, other] = [await open(), await open()];
  assert.equal(await mine.locator('article').count(), 3);

  await mine.getByPlaceholder('A comment').first().fill('Said <b>across</b> origins.');
  await mine.getByRole('button', { name: 'Add' }).first().click();
  for (const [at, page] of [mine, other].entries()) {
    const comment = page.getByText('Said <b>across</b> origins.', { exact: true });
    await comment.waitFor();
    assert.equal(await comment.count(), 1, `page ${at}`);
  }

  // A post that neither page has loaded comes with its first comment.
  const post = { title: 'Made later', content: 'c' };
  const created = await server.send('POST', '/posts', post);
  await server.send('POST', `${created.headers.get('location')}/comments`, { content: 'First!' });
  await mine.getByText('First!').waitFor();
  assert.equal(await mine.locator('h2').first().innerText(), 'MADE LATER');
});

test('the page shows older posts and more comments', { skip: noBrowser }, async (context) => {
  const { server, open } = await startPage(context);
  const [newest] = (await (await server.fetch('/posts')).json()) as { id: string }[];
  for (let count = 1; count <= 45; count += 1) {
    await server.send('POST', comments(newest?.id ?? ''), { content: `Comment ${count}.` });
  }
  for (let count = 1; count <= 9; count += 1) {
    await server.send('POST', '/posts', { title: `Post ${count}`, content: 'c' });
  }
  const page = await open();
  assert.equal(await page.locator('article').count(), 10);
  const older = page.getByRole('button', { name: 'Older posts' });
  await older.click();
  await page.getByRole('heading', { name: 'HELLO, WORLD' }).waitFor();
  assert.equal(await older.isVisible(), false);
  const titles = ['HELLO, SUBSCRIPTIONS', 'HELLO, GRAPHQL', 'HELLO, WORLD'];
  assert.deepEqual((await page.locator('h2').allInnerTexts()).slice(-3), titles);

  const article = page.locator('article', { hasText: 'HELLO, SUBSCRIPTIONS' });
  await server.send('POST', comments(newest?.id ?? ''), { content: 'As an event.' });
  await article.getByText('As an event.').waitFor();
  const more = article.getByRole('button', { name: 'More comments' });
  await more.click();
  await article.getByText('Comment 30.').waitFor();
  await more.click();
  await article.getByText('Comment 45.').waitFor();
  const shown = (await article.locator('li').allInnerTexts()).slice(1);
  const all = Array.from({ length: 45 }, (_, index) => `Comment ${index + 1}.`);
  assert.deepEqual(shown, [...all, 'As an event.']);
  assert.equal(await more.isVisible(), false);
});

test('the page keeps what is typed without a server', { skip: noBrowser }, async (context) => {
  const { env, server, open } = await startPage(context);
  const page = await open();
  const field = page.getByPlaceholder('A comment').first();
  await field.fill('Half a thou');
  await server.stop();
  await page.getByText(`The connection to ${server.url} is lost.`, { exact: false }).waitFor();
  await page.getByRole('button', { name: 'Add' }).first().click();
  await page.getByText(`Your comment is not sent yet: ${server.url} cannot be reached.`).waitFor();
  assert.equal(await field.inputValue(), 'Half a thou');

  const again = await startServer(context, { env: { ...env, PORT: `${server.port}` } });
  await page.getByText(`Connected to ${again.url}`).waitFor();
  assert.equal(await field.inputValue(), 'Half a thou');
  assert.equal(await page.locator('article').count(), 3);
  await page.getByRole('button', { name: 'Add' }).first().click();
  await page.getByText('Half a thou', { exact: true }).waitFor();
});
