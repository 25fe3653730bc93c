/** The front page in a browser: what moves on it, and where it does not. */

import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { Browser } from 'playwright-core';
import { noBrowser, openBrowser, openWatchedPage } from '../support/browser.ts';
import { startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

describe('the front page in a browser', { skip: noBrowser }, () => {
  let browser: Browser;
  before(async () => (browser = await openBrowser()));
  after(() => browser.close());

  async function open(t: TestContext, env: Readonly<Record<string, string>>) {
    const server = await startServer(t, { env });
    const pages = [await openWatchedPage(browser), await openWatchedPage(browser)] as const;
    for (const { page } of pages) await page.goto(`${server.url}/`);
    t.after(() => Promise.all(pages.map(({ page }) => page.close())));
    return { server, pages, live: pages.map(({ page }) => page.locator('#live')) };
  }

  it('shows the comment that its button adds, in each window, once', async (t) => {
    const { server, pages, live } = await open(t, {});
    const posted = pages[0].page.waitForRequest((request) => request.method() === 'POST');
    for (const part of live) await part.getByText('Connected.', { exact: false }).waitFor();
    for (const part of live) await part.locator('li', { hasText: 'Listening.' }).waitFor();
    await live[0]?.getByRole('button', { name: 'Add a comment' }).click();
    const { content } = (await posted).postDataJSON() as { content: string };
    for (const part of live) {
      const item = part.locator('li', { hasText: content });
      await item.getByText('Hello, subscriptions').waitFor();
      assert.equal(await item.count(), 1);
    }
    assert.equal(await pages[0].page.locator('#address').innerText(), server.url);
    for (const { asked, faults } of pages) {
      assert.deepEqual(faults, []);
      assert.ok(asked.every((url) => url.startsWith(`${server.url}/`)));
    }
  });

  it('shows comments as texts, and adds none to a blog that is in use', async (t) => {
    const { server, live } = await open(t, { DEMO_DATA: 'false' });
    for (const part of live) await part.getByText('Connected.', { exact: false }).waitFor();
    const post = { title: 'In <i>use</i>', content: 'c' };
    const created = await server.send('POST', '/posts', post);
    const content = '<img src=x onerror=alert(1)>';
    await server.send('POST', `${created.headers.get('location')}/comments`, { content });
    for (const part of live) {
      await part.getByText(content, { exact: true }).waitFor();
      await part.getByText('In <i>use</i>', { exact: true }).waitFor();
      assert.equal(await part.getByRole('button').count(), 0);
    }
  });

  for (const [text, env] of [
    ['Comments need an account on this server.', { REQUIRE_AUTH: 'writes' }],
    [
      'Stored. Comments wait for approval on this',
      { REQUIRE_AUTH: 'owners', COMMENTS: 'moderated' },
    ],
  ] as const) {
    it(`says what became of a comment: ${text}`, async (t) => {
      const { live } = await open(t, env);
      await live[0]?.getByRole('button', { name: 'Add a comment' }).click();
      await live[0]?.getByText(text).waitFor();
    });
  }

  it('shows no list where comments are read with a token alone', async (t) => {
    const { pages } = await open(t, { REQUIRE_AUTH: 'members' });
    const [{ page, faults }] = pages;
    // The demo post, and the events.
    await until('both are refused', () => faults.filter((fault) => /401/.test(fault)).length === 2);
    assert.equal(await page.locator('#live').isVisible(), false);
  });
});
