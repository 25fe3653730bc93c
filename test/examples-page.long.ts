/** The page of examples/page on another origin than its server: pages of posts and comments, and lost connections. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { noBrowser, openBrowser, openWatchedPage } from './support/browser.ts';
import { startLossyProxy } from './support/lossy-proxy.ts';
import { startServer, type TestServer } from './support/server.ts';
import { until } from './support/until.ts';
import { comment, demoPost, isLive, item } from './support/site.ts';
import { projectFolder } from './support/source.ts';

/** The page on a port of its own, and the address with which it asks this server. */
async function startElsewhere(t: TestContext, browser: Browser) {
  const file = readFileSync(join(projectFolder, 'examples', 'page', 'index.html'));
  const files = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html').end(file);
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  t.after(() => files.close());
  const origin = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const mode = { COMMENTS: 'open', REQUIRE_AUTH: 'owners', COMMENTS_PER_MINUTE_MAX: '1000' };
  const env = { ALLOWED_ORIGINS: origin, ...mode };
  const server = await startServer(t, { env });
  const open = async (url: string, hash: string): Promise<Page> => {
    const { page } = await openWatchedPage(browser);
    await page.goto(`${origin}/?server=${url}${hash}`);
    return page;
  };
  return { env, server, open };
}

const add = (server: TestServer, content: string): Promise<Response> =>
  server.send('POST', `/posts/${demoPost}/comments`, { content });

describe('the page of the blog on another origin', { skip: noBrowser }, () => {
  let browser: Browser;
  before(async () => (browser = await openBrowser()));
  after(() => browser.close());

  it('shows older posts, and all comments before the live ones', async (t) => {
    const { server, open } = await startElsewhere(t, browser);
    for (let count = 1; count <= 105; count += 1) await add(server, `Comment ${count}.`);
    const page = await open(server.url, `#/post/${demoPost}`);
    await item(page, 'Comment 99.').waitFor();
    assert.equal(await page.getByText('live', { exact: true }).count(), 0);
    await page.getByRole('button', { name: 'More comments' }).click();
    await isLive(page);
    await add(server, 'As an event.');
    await item(page, 'As an event.').waitFor();
    const shown = await page.locator('.list .text').allInnerTexts();
    const all = Array.from({ length: 105 }, (_, index) => `Comment ${index + 1}.`);
    assert.deepEqual(shown, ['Listening.', ...all, 'As an event.']);
  });

  it('shows posts in pages, the newest first, and finds the way back', async (t) => {
    const { server, open } = await startElsewhere(t, browser);
    const answer = await server.send('POST', '/auth/login', {
      username: 'user',
      password: 'password',
    });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const ask = (method: string, path: string, record: object): Promise<Response> => {
      const type = method === 'PATCH' ? { 'Content-Type': 'application/merge-patch+json' } : {};
      const body = JSON.stringify(record);
      return server.fetch(path, { method, headers: { ...headers, ...type }, body });
    };
    const paths: string[] = [];
    for (let count = 1; count <= 9; count += 1) {
      const made = await ask('POST', '/posts', { title: `Post ${count}`, content: 'c' });
      paths.push(made.headers.get('location') ?? '');
    }
    // The order is that of publication, of one in each millisecond.
    for (const path of paths.toReversed()) {
      await ask('PATCH', path, { status: 'PUBLISHED' });
      const publishedAt = Date.now();
      await until('the next millisecond', () => Date.now() > publishedAt);
    }
    const page = await open(server.url, '');
    const titles = (): Promise<string[]> => page.locator('.entry h2').allInnerTexts();
    await page.getByRole('link', { name: 'Older posts' }).waitFor();
    const own = paths.map((_, index) => `Post ${index + 1}`);
    assert.deepEqual(await titles(), [...own, 'Hello, subscriptions']);
    await page.getByRole('link', { name: 'Older posts' }).click();
    await page.getByRole('heading', { name: 'Hello, world' }).waitFor();
    assert.deepEqual(await titles(), ['Hello, GraphQL', 'Hello, world']);
    await page.goBack();
    await page.getByRole('heading', { name: 'Post 1' }).waitFor();
  });

  it('stores a click once, also where the server was away, and keeps what is typed', async (t) => {
    const { env, server, open } = await startElsewhere(t, browser);
    const page = await open(server.url, `#/post/${demoPost}`);
    await isLive(page);
    await server.stop();
    await comment(page, 'Half a thou', 'Ada');
    await page.getByText('The server does not answer.').waitFor();
    assert.equal(await page.getByLabel('Your comment').inputValue(), 'Half a thou');
    await startServer(t, { env: { ...env, PORT: `${server.port}` } });
    await item(page, 'Half a thou').getByText('Ada').waitFor();
    await isLive(page);
    assert.equal(await item(page, 'Half a thou').count(), 1);
    assert.equal(await page.getByLabel('Your comment').inputValue(), '');
  });

  it('stores and shows each click once behind a proxy that loses requests and responses', async (t) => {
    const { server, open } = await startElsewhere(t, browser);
    const proxy = await startLossyProxy(t, () => [server.port], 3);
    const page = await open(`http://127.0.0.1:${proxy.port}`, `#/post/${demoPost}`);
    const clicks: string[] = [];
    while (clicks.length < 8 || proxy.counts.unanswered + proxy.counts.torn < 4) {
      const click = `Click ${clicks.length + 1}.`;
      clicks.push(click);
      await comment(page, click);
      await page.getByText('your comment is published').waitFor({ timeout: 60_000 });
      proxy.cut();
    }
    await isLive(page);
    await item(page, clicks.at(-1) ?? '').waitFor();
    const stored = await server.fetch(`/posts/${demoPost}/comments`);
    const contents = ((await stored.json()) as { content: string }[]).map(({ content }) => content);
    assert.deepEqual(contents, ['Listening.', ...clicks]);
    assert.deepEqual(await page.locator('.list .text').allInnerTexts(), contents);
  });

  it('misses nothing when its connection goes silent', async (t) => {
    const { server, open } = await startElsewhere(t, browser);
    const proxy = await startLossyProxy(t, () => [server.port], Number.POSITIVE_INFINITY);
    const page = await open(`http://127.0.0.1:${proxy.port}`, `#/post/${demoPost}`);
    await isLive(page);
    proxy.swallow();
    await add(server, 'Into the silence.');
    await page.getByText('connecting', { exact: true }).waitFor({ timeout: 30_000 });
    await item(page, 'Into the silence.').waitFor({ timeout: 30_000 });
    await add(server, 'After it.');
    await item(page, 'After it.').waitFor();
    const shown = await page.locator('.list .text').allInnerTexts();
    assert.deepEqual(shown, ['Listening.', 'Into the silence.', 'After it.']);
  });
});
