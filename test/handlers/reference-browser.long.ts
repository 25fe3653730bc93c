/** The page of the API reference in a browser: whole, offline, and able to send a request. */

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { noBrowser, openWatchedPage, useBrowser, type WatchedPage } from '../support/browser.ts';
import { entries } from '../support/reference.ts';

describe('the API reference in a browser', { skip: noBrowser }, () => {
  const used = useBrowser({ env: { TOKEN_TTL_SECONDS: '10' } });
  let { page, asked, faults } = {} as WatchedPage;

  before(async () => {
    ({ page, asked, faults } = await openWatchedPage(used.browser));
    await page.goto(`${used.server.url}/docs`);
    await page.locator('.opblock').first().waitFor();
  });

  it('shows every operation', async () => {
    assert.equal(page.url(), `${used.server.url}/docs/`);
    const shown = await page.locator('.opblock-summary').allInnerTexts();
    const texts = shown.map((text) => text.replaceAll(/[\s\u200B]+/g, ''));
    for (const { method, path } of entries) {
      const isShown = texts.some((text) => text.startsWith(`${method}${path}`));
      assert.ok(isShown, `${method} ${path}`);
    }
    assert.equal(shown.length, entries.length);
  });

  it('shows a lock where nothing is done without a token', async () => {
    const needing = entries
      .filter(({ operation: { security } }) => security?.every((way) => 'bearer' in way) === true)
      .filter(({ operation: { security } }) => security?.length !== 0)
      .map(({ operation }) => operation.operationId);
    assert.ok(needing.length > 0 && needing.length < 5);
    const locked = page.locator('.opblock', { has: page.locator('.authorization__btn') });
    const ids = await locked.evaluateAll((blocks) => blocks.map(({ id }) => id));
    assert.deepEqual(
      ids.map((id) => id.split('-').at(-1)),
      needing,
    );
  });

  it('carries out every operation, with the token of the log-in as soon as there is one', async () => {
    const outcomes: string[] = [];
    // The examples name the same records: what is removed is removed last, comments before posts.
    const removals = entries.filter(({ method }) => method === 'DELETE').toReversed();
    const others = entries.filter(({ method }) => method !== 'DELETE');
    const logins = others.filter(({ path }) => path === '/auth/login');
    for (const { name, path, method, operation } of new Set([...logins, ...others, ...removals])) {
      // What is redirected is the same operation once more. Demo accounts keep their passwords.
      if (path === '/auth/password' || (path === '/articles/{id}' && method !== 'GET')) continue;
      const block = page.locator(`[id$="-${operation.operationId}"]`);
      await block.locator('.opblock-summary-control').click();
      await block.getByRole('button', { name: 'Try it out' }).click();
      const file = { name: 'part.txt', mimeType: 'text/plain', buffer: Buffer.from('a file') };
      for (const input of await block.locator('input[type=file]').all()) {
        await input.setInputFiles(file);
      }
      await block.getByRole('button', { name: 'Execute' }).click();
      const status = block.locator('.live-responses-table .response .response-col_status');
      const [shown = ''] = (await status.first().innerText()).split('\n');
      if (!shown.startsWith('2')) outcomes.push(`${name}: ${shown}`);
      await block.locator('.opblock-summary-control').click();
    }
    assert.deepEqual(outcomes, []);
    const posts = await used.server.read<{ title: string }[]>('/posts');
    assert.equal(posts[0]?.title, 'Hello, ink');
  });

  it('refreshes the token until the visitor logs out', async () => {
    const isRefresh = (response: { url: () => string }): boolean =>
      response.url().endsWith('/auth/refresh');
    const refreshed = await page.waitForResponse(isRefresh);
    const { access_token: token } = (await refreshed.json()) as { access_token: string };
    const block = page.locator('[id$="-getProfile"]');
    await block.locator('.opblock-summary-control').click();
    const sent = page.waitForRequest((request) => request.url().endsWith('/profile'));
    await block.getByRole('button', { name: 'Execute' }).click();
    assert.equal((await sent).headers()['authorization'], `Bearer ${token}`);
    await page.getByRole('button', { name: 'Authorize' }).click();
    await page.locator('.auth-container').getByText('Logout', { exact: true }).click();
    await page.waitForResponse(isRefresh);
    // Its token is not put in the place of none.
    await pause(500);
    const dialog = page.locator('.auth-container');
    assert.equal(await dialog.getByRole('button', { name: 'Authorize' }).count(), 1);
  });

  it('asked no other host for anything and logged no error', () => {
    const own = [`${used.server.url}/`, 'data:', 'blob:'];
    const others = asked.filter((url) => !own.some((start) => url.startsWith(start)));
    assert.deepEqual(others, []);
    assert.ok(asked.includes(`${used.server.url}/openapi.json`));
    assert.deepEqual(faults, []);
  });
});
