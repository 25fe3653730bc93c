/** The page of examples/page on another origin than its server: pages of posts and comments, and lost connections. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { noBrowser, openBrowser, openWatchedPage } from './support/browser.ts';
import { logIn } from './support/login.ts';
import { startLossyProxy } from './support/lossy-proxy.ts';
import { startServer } from './support/server.ts';
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
  const server = await startServer(t, { env: { ALLOWED_ORIGINS: origin, ...mode } });
  const open = async (url: string, hash: string): Promise<Page> => {
    const { page } = await openWatchedPage(browser);
    await page.goto(`${origin}/?server=${url}${hash}`);
    return page;
  };
  return { server, open };
}

describe('the page of the blog on another origin', { skip: noBrowser }, () => {
  let browser: Browser;
  before(async () => (browser = await openBrowser()));
  after(() => browser.close());

  it('shows posts in pages, the newest first, and finds the way back', async (t) => {
    const { server, open } = await startElsewhere(t, browser);
    const Authorization = `Bearer ${await logIn(server)}`;
    const ask = (method: string, path: string, record: object): Promise<Response> => {
      const type = method === 'PATCH' ? 'merge-patch+json' : 'json';
      const headers = { Authorization, 'Content-Type': `application/${type}` };
      return server.fetch(path, { method, headers, body: JSON.stringify(record) });
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
});
