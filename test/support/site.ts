/** A blog on one host: nginx with the file of examples/site before a server, and its windows in a browser. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openWatchedPage } from './browser.ts';
import { findPort } from './postgres.ts';
import { startServer } from './server.ts';
import { projectFolder } from './source.ts';
import { until } from './until.ts';
import { createDirectory } from './uploads.ts';

const program = '/usr/sbin/nginx';

/** For `skip` of a suite: false, or why the suite cannot run. */
export const noNginx =
  spawnSync(program, ['-v'], { stdio: 'ignore' }).status !== 0 &&
  'there is no nginx on this machine';

/** The example with the ports and the folder of this test. */
async function startNginx(t: TestContext, inkwellPort: number): Promise<string> {
  const folder = await createDirectory(t);
  const port = await findPort();
  const example = readFileSync(join(projectFolder, 'examples/site/nginx.conf'), 'utf8')
    .replace('listen 8000;', `listen 127.0.0.1:${port};`)
    .replace('/srv/blog', join(projectFolder, 'examples/page'))
    .replace('127.0.0.1:8080', `127.0.0.1:${inkwellPort}`);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  await writeFile(
    join(folder, 'nginx.conf'),
    `${user} daemon off; pid ${folder}/pid; error_log stderr;
events {}
http {
access_log off; ${temporary}
${example}
}`,
  );
  const child = spawn(program, ['-p', folder, '-c', join(folder, 'nginx.conf')]);
  t.after(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, 'exit');
  });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const url = `http://127.0.0.1:${port}`;
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/hello`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('nginx to be there', isUp).catch(() => Promise.reject(new Error(said)));
  return url;
}

export async function startSite(
  t: TestContext,
  browser: Browser,
  env: Readonly<Record<string, string>> = {},
) {
  const kept = { REQUIRE_AUTH: 'owners', COMMENTS: 'moderated', TRUSTED_PROXIES: '127.0.0.1' };
  const server = await startServer(t, { env: { ...kept, ...env } });
  const url = await startNginx(t, server.port);
  const watched: Awaited<ReturnType<typeof openWatchedPage>>[] = [];
  /** A window of somebody else: nothing is shared with the others. */
  const open = async (hash = ''): Promise<Page> => {
    const one = await openWatchedPage(browser);
    watched.push(one);
    t.after(() => one.page.close());
    await one.page.goto(`${url}/${hash}`);
    return one.page;
  };
  return {
    server,
    url,
    open,
    /** What went wrong in all windows, a refused script or style included. */
    faults: () => watched.flatMap(({ faults }) => faults),
    /** Requests to other hosts. */
    strange: () =>
      watched.flatMap(({ asked }) => asked).filter((asked) => !asked.includes(url.slice(5))),
  };
}

/** At the dialog, which the desk opens. */
export async function logIn(page: Page, username = 'user', password = 'password'): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
}

/** A post of the demo data. */
export const demoPost = '019b8d5e-9c00-7000-8000-000000000103';

export async function comment(page: Page, content: string, name = ''): Promise<void> {
  await page.getByLabel('Your name').fill(name);
  await page.getByLabel('Your comment').fill(content);
  await page.getByRole('button', { name: 'Comment', exact: true }).click();
}

/** The live connection is there: what comes now is not of a page that was loaded. */
export const isLive = (page: Page): Promise<void> =>
  page.getByText('live', { exact: true }).waitFor();
export const item = (page: Page, text: string) => page.locator('.list > li', { hasText: text });
