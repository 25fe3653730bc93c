/** A real browser, where one is installed, for what only a page can show. */

import { existsSync } from 'node:fs';
import { after, before } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';
import { type ServerOptions, startServer, type TestServer } from './server.ts';

const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = browsers.find((path) => existsSync(path));

/** For `skip` of a suite: false, or why the suite cannot run. */
export const noBrowser = executablePath === undefined && 'no Chromium is installed';

/** Whatever a page is to show is there by then, or the test fails. */
export const patienceMs = 20_000;

export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: executablePath ?? '',
    args: ['--no-sandbox', '--disable-background-networking'],
  });
}

/** A server and a browser for a suite, which end with it. */
export function useBrowser(options: ServerOptions = {}) {
  const used = {} as { server: TestServer; browser: Browser };
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    used.server = await startServer({ after: (end) => ends.push(end) }, options);
    used.browser = await openBrowser();
  });
  after(async () => {
    await used.browser.close();
    for (const end of ends) await end();
  });
  return used;
}

export interface WatchedPage {
  readonly page: Page;
  /** The addresses of all requests and sockets. */
  readonly asked: string[];
  /** What the page threw, or logged as an error. */
  readonly faults: string[];
}

export async function openWatchedPage(browser: Browser): Promise<WatchedPage> {
  const page = await browser.newPage();
  const asked: string[] = [];
  const faults: string[] = [];
  page.setDefaultTimeout(patienceMs);
  page.on('request', (request) => asked.push(request.url()));
  page.on('websocket', (socket) => asked.push(socket.url()));
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => {
    if (line.type() === 'error') faults.push(line.text());
  });
  return { page, asked, faults };
}
