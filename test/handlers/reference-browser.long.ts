/** The page of the API reference in a browser: whole, offline, and able to send a request. */

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { noBrowser, openBrowser, openWatchedPage } from '../support/browser.js';
import { entries } from '../support/reference.js';
import { startServer, type TestServer } from '../support/server.js';

describe('the API reference in a browser', { skip: noBrowser }, () => {
  let server: TestServer;
  let browser: Browser;
  let page: Page;
  const ends: (() => Promise<void>)[] = [];
  let asked: string[];
  let faults: string[];

  before(async () => {
    server = await startServer({ after: (end) => ends.push(end) });
    browser = await openBrowser();
    ({ page, asked, faults } = await openWatchedPage(browser));
    await page.goto(`${server.url}/docs`);
    await page.locator('.opblock').first().waitFor();
  });

  after(async () => {
    await browser.close();
    for (const end of ends) await end();
  });

  it('shows every operation', async () => {
    assert.equal(page.url(), `${server.url}/docs/`);
    const shown = await page.locator('.opblock-summary').allInnerTexts();
    const texts = shown.map((text) => text.replaceAll(/[\s\u200B]+/g, ''));
    for (const { method, path } of entries) {
      assert.ok(
        texts.some((text) => text.startsWith(`${method}${path}`)),
        `${method} ${path}`,
      );
    }
    assert.equal(shown.length, entries.length);
  });

  it('sends the example of a route, and shows the response', async () => {
    await page.getByText('Create a post').click();
    await page.getByRole('button', { name: 'Try it out' }).click();
    await page.getByRole('button', { name: 'Execute' }).click();
    const response = page.locator('.live-responses-table');
    await response.getByText('location: /posts/').waitFor();
    const posts = (await (await server.fetch('/posts')).json()) as { title: string }[];
    assert.equal(posts[0]?.title, 'Hello, ink');
  });

  it('asked no other host for anything and logged no error', () => {
    const own = [`${server.url}/`, 'data:', 'blob:'];
    assert.deepEqual(
      asked.filter((url) => !own.some((start) => url.startsWith(start))),
      [],
    );
    assert.ok(asked.includes(`${server.url}/openapi.json`));
    assert.deepEqual(faults, []);
  });
});
