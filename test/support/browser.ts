/** A real browser, where one is installed, for what only a page can show. */

import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

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
