/** The example page, opened twice from another port: a comment of one arrives in the other. */

import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser, openBrowser, patienceMs } from './support/browser.js';
import { startServer } from './support/server.js';
import { projectFolder } from './support/source.js';

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
