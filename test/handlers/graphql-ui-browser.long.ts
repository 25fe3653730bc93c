import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { noBrowser, openWatchedPage, useBrowser, type WatchedPage } from '../support/browser.ts';

describe('the browser UI in a browser', { skip: noBrowser }, () => {
  /** Of the server: the page has its own. */
  const clock = { ahead: 0 };
  const now = () => new Date(Date.now() + clock.ahead);
  const used = useBrowser({ env: { TOKEN_TTL_SECONDS: '24' }, now });
  let { page, asked, faults } = {} as WatchedPage;
  let introspections = 0;

  before(async () => {
    ({ page, asked, faults } = await openWatchedPage(used.browser));
    page.on('request', (request) => {
      if (request.postData()?.includes('IntrospectionQuery') === true) introspections += 1;
    });
    await page.goto(`${used.server.url}/graphql-ui`);
    await tab('Posts').waitFor();
  });

  const tab = (name: string) => page.getByText(name, { exact: true }).first();
  const open = async (name: string): Promise<void> => tab(name).click();
  const send = async (): Promise<void> => page.getByText('Send Request').first().click();
  const shows = async (text: string): Promise<void> => page.getByText(text).first().waitFor();

  it('opens with the endpoint and the first example filled in', async () => {
    assert.equal(page.url(), `${used.server.url}/graphql-ui/`);
    await shows(`${used.server.url}/graphql`);
    await shows('allPosts');
    assert.equal(await page.locator('app-banner').filter({ visible: true }).count(), 0);
  });

  it('asks for the schema once for all tabs', async () => {
    await tab('Docs').click();
    await shows('@uppercase');
    await tab('Docs').click();
    assert.equal(introspections, 1);
  });

  it('runs the query that a first-time visitor finds', async () => {
    await open('Posts');
    await send();
    await shows('"Hello, world"');
    await shows('"Ada Lovelace"');
  });

  it('uploads a file', async () => {
    await open('Upload');
    await page.locator('.variables-editor--title').click();
    await page.locator('.variables-add-files-button').click();
    await page.locator('.variables-file-item-name-input').fill('file');
    const file = { name: 'from-browser.txt', mimeType: 'text/plain', buffer: Buffer.from('hey') };
    await page.locator('.variables-file-item-input').setInputFiles(file);
    await send();
    await shows('"upload"');
    const stored = await (await used.server.fetch('/api/multiparts')).formData();
    const found = stored.get('from-browser.txt');
    assert.ok(found instanceof File);
    assert.equal(await found.text(), 'hey');
  });

  it('shows a comment that arrives by subscription', async () => {
    await open('Comments, live');
    await send();
    const [post] = await used.server.read<{ id: string }[]>('/posts');
    // Nothing on the page tells that the subscription has begun, and late ones get no replay.
    const content = 'Seen in a browser.';
    const add = (): Promise<unknown> =>
      used.server.send('POST', `/posts/${post?.id}/comments`, { content });
    const again = setInterval(() => void add().catch(() => undefined), 250);
    try {
      await shows(`"${content}"`);
    } finally {
      clearInterval(again);
    }
  });

  const account = () => page.getByRole('button', { name: 'user', exact: true });
  const tryLogin = async (password: string): Promise<void> => {
    await page.getByLabel('Username').fill('user');
    await page.getByLabel('Password').fill(password);
    await page.locator('.login-dialog button').first().click();
  };
  const logIn = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Log in' }).click();
    await tryLogin('password');
    await account().waitFor();
  };
  const sentToken = async (): Promise<string | undefined> => {
    const sent = page.waitForRequest((request) => request.url().endsWith('/graphql'));
    await send();
    return (await sent).headers()['authorization'];
  };
  const isLoggedOut = async (): Promise<void> => {
    const button = page.getByRole('button', { name: 'Log in' });
    await button.waitFor();
    assert.equal(await button.getAttribute('title'), 'The session has ended.');
    // A refused token is a fault to the browser.
    assert.ok(faults.splice(0).every((fault) => fault.includes('401')));
  };

  it('sends the token of a log-in with each request, and refreshes it', async () => {
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('.login-dialog', { hasText: 'user / password' }).waitFor();
    await tryLogin('wrong');
    await page.locator('.login-dialog output', { hasText: 'password' }).waitFor();
    await tryLogin('password');
    await account().waitFor();
    await open('Posts');
    const first = await sentToken();
    assert.match(first ?? '', /^Bearer [\w-]+\.[\w-]+\.[\w-]+$/);
    for (let count = 0; count < 2; count += 1) {
      const refreshed = await page.waitForResponse((response) =>
        response.url().endsWith('/auth/refresh'),
      );
      const { access_token: token } = (await refreshed.json()) as { access_token: string };
      assert.notEqual(`Bearer ${token}`, first, `round ${count}`);
      assert.equal(await sentToken(), `Bearer ${token}`, `round ${count}`);
    }
    // A refused log-in is a fault to the browser.
    assert.ok(faults.splice(0).every((fault) => fault.includes('401')));
  });

  it('creates a post, and logs out', async () => {
    await open('Create a post');
    await send();
    await shows('"createPost"');
    const [post] = await used.server.read<{ title: string }[]>('/posts');
    assert.equal(post?.title, 'Hello, ink');
    await account().click();
    await page.getByRole('button', { name: 'Log out' }).click();
    await open('Posts');
    assert.equal(await sentToken(), undefined);
  });

  it('refreshes no token while it is hidden, and logs out when the server refuses one', async () => {
    const hide = (isHidden: boolean): Promise<void> =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await logIn();
    await hide(true);
    clock.ahead += 60_000;
    await pause(13_000);
    assert.equal(await account().count(), 1);
    await hide(false);
    await isLoggedOut();

    await logIn();
    clock.ahead += 60_000;
    await send();
    await isLoggedOut();
  });

  it('shows nothing that leads to another host, and no scripts that cannot run', async () => {
    const texts = ['Pre-request', 'Post-request', 'Auth', 'Reloaded doc successfully'];
    const selectors = ['app-banner', '.query-result__none-subtext', '.lucide-user'];
    const unwanted = selectors.map((selector) => page.locator(selector));
    for (const one of [
      ...unwanted,
      ...texts.map((text) => page.getByText(text, { exact: true })),
    ]) {
      assert.equal(await one.filter({ visible: true }).count(), 0, String(one));
    }
  });

  it('has the result below the editor on the width of a phone', async () => {
    const place = async (text: string) =>
      (await page.getByText(text, { exact: true }).first().boundingBox())!;
    await page.setViewportSize({ width: 390, height: 800 });
    const [editor, result] = [await place('Query'), await place('Result')];
    assert.ok(result.y > editor.y + 100, `${result.y}, ${editor.y}`);
    assert.ok(result.x < 120, `${result.x}`);
    await page.getByRole('button', { name: 'Docs' }).click();
    await page.locator('app-doc-viewer').getByText('Mutation').first().waitFor();
  });

  it('asked no other host for anything and logged no error', () => {
    const own = [
      `${used.server.url}/`,
      `${used.server.url.replace('http', 'ws')}/`,
      'data:',
      'blob:',
    ];
    const others = asked.filter((url) => !own.some((start) => url.startsWith(start)));
    assert.deepEqual(others, []);
    assert.ok(asked.some((url) => url.endsWith('/graphql')));
    assert.deepEqual(faults, []);
  });
});
