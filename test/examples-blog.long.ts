/** The blog of examples/page in a browser, served by nginx beside Inkwell as in examples/site. */

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { runCommandHere } from './support/command.ts';
import { noBrowser, openBrowser } from './support/browser.ts';
import { comment, demoPost, isLive, item, logIn, noNginx, startSite } from './support/site.ts';
import { newSqliteFile, skipSqlite, toSqliteUrl } from './support/sqlite.ts';
import { until } from './support/until.ts';

const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

async function publish(page: Page, title: string, content: string): Promise<void> {
  await page.getByRole('link', { name: 'Write a post' }).click();
  await page.getByLabel('Title').fill(title);
  await page.getByLabel('Text').fill(content);
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.getByText('Published.').waitFor();
}

describe('a blog on one host', { skip: noBrowser || noNginx }, () => {
  let browser: Browser;
  before(async () => (browser = await openBrowser()));
  after(() => browser.close());

  it('a reader comments, the author approves, and another reader sees it arrive', async (t) => {
    const site = await startSite(t, browser);
    const author = await site.open('#/desk');
    await logIn(author);
    await publish(author, 'On Ink', 'It stays.');
    const reader = await site.open();
    await reader.getByRole('link', { name: 'On Ink' }).click();
    const other = await site.open(new URL(reader.url()).hash);
    await Promise.all([isLive(reader), isLive(other)]);

    await comment(reader, 'Well <b>said</b>.', 'Grete');
    await reader.getByText('Your comment waits for approval').waitFor();
    await item(reader, 'Well <b>said</b>.').getByText('waits for approval').waitFor();
    await reader.reload();
    await item(reader, 'Well <b>said</b>.').getByText('waits for approval').waitFor();
    await isLive(reader);
    await other.reload();
    await isLive(other);
    assert.equal(await item(other, 'Well').count(), 0);

    await author.getByRole('link', { name: 'Comments' }).click();
    const waiting = item(author, 'Well <b>said</b>.');
    await waiting.getByRole('link', { name: 'On Ink' }).waitFor();
    await waiting.getByRole('button', { name: 'Approve' }).click();
    for (const page of [reader, other]) {
      await item(page, 'Well <b>said</b>.').getByText('Grete').waitFor();
      await item(page, 'waits for approval').waitFor({ state: 'detached' });
      assert.equal(await item(page, 'Well <b>said</b>.').count(), 1);
    }
    await reader.getByText('Your comment is published.').waitFor();
    assert.deepEqual([site.faults(), site.strange()], [[], []]);
  });

  it('an author writes, shows a picture, publishes, withdraws and removes', async (t) => {
    const site = await startSite(t, browser);
    const author = await site.open('#/desk');
    await logIn(author);
    await author.getByRole('link', { name: 'Write a post' }).click();
    await author.getByLabel('Title').fill('Pictures');
    await author.getByLabel('Text').fill('Before.');
    const file = { name: 'a view.png', mimeType: 'image/png', buffer: picture };
    await author.getByLabel('Add a picture').setInputFiles(file);
    await author.getByText('The words in brackets').waitFor();
    // What is not saved is there again.
    await author.reload();
    await author.getByText('What you had not saved is here again.').waitFor();
    await author.getByRole('button', { name: 'Save draft' }).click();
    await author.getByText('Saved.').waitFor();
    const { hash } = new URL(author.url());
    const reader = await site.open(hash.replace('desk/edit', 'post'));
    await reader.getByText('There is no such post, or it is not published.').waitFor();

    await author.getByRole('button', { name: 'Publish' }).click();
    await author.getByText('Published.').waitFor();
    await reader.getByRole('link', { name: 'Marginalia' }).click();
    await reader.getByRole('link', { name: 'Pictures' }).click();
    const shown = reader.getByRole('img', { name: 'a view' });
    await until('the picture is loaded', () =>
      shown.evaluate((img) => (img as unknown as { naturalWidth: number }).naturalWidth === 1),
    );
    await author.getByRole('button', { name: 'Withdraw' }).click();
    await author.getByText('it is a draft again').waitFor();
    await reader.reload();
    await reader.getByText('There is no such post, or it is not published.').waitFor();
    author.on('dialog', (dialog) => void dialog.accept());
    await author.getByRole('button', { name: 'Remove' }).click();
    await author.getByRole('heading', { name: 'Your posts' }).waitFor();
    assert.equal(await author.getByText('Pictures').count(), 0);
    assert.deepEqual([site.faults(), site.strange()], [[], []]);
  });

  it('what people write is text, and no link runs a script', async (t) => {
    const site = await startSite(t, browser, { COMMENTS: 'open' });
    const author = await site.open('#/desk');
    await logIn(author);
    const hostile = '<img src=x onerror="document.title=1">';
    const links = '[a](javascript:alert(1)) ![b](javascript:alert(1)) [c](https://example.org/c)';
    await publish(author, hostile, `${hostile}\n\n## ${hostile}\n\n- ${links}\n\n> ${hostile}`);
    await author.getByRole('link', { name: 'Read' }).click();
    await author.getByRole('heading', { name: hostile, level: 1 }).waitFor();
    const targets = await author.locator('.body a').evaluateAll((all) => all.map(String));
    assert.deepEqual(targets, ['https://example.org/c']);
    // Who is logged in comments by the name of the account.
    assert.equal(await author.getByLabel('Your comment').isVisible(), true);
    assert.equal(await author.getByLabel('Your name').isVisible(), false);
    const reader = await site.open(new URL(author.url()).hash);
    await isLive(reader);
    await comment(reader, hostile, hostile);
    await item(reader, hostile).waitFor();
    await reader.getByText('is published').waitFor();
    for (const page of [author, reader]) assert.equal(await page.locator('main img').count(), 0);
    assert.deepEqual(site.faults(), []);
  });

  it(
    'an author changes the password, which ends other sessions',
    { skip: skipSqlite },
    async (t) => {
      const env = { STORE_URL: toSqliteUrl(await newSqliteFile(t)) };
      const [old, next] = ['a jar of black ink', 'a jar of blue blots'];
      const args = ['accounts', 'add', 'ann', '--email', 'ann@example.org', '--role', 'USER'];
      assert.equal((await runCommandHere(args, { env, input: `${old}\n` })).code, 0);
      const site = await startSite(t, browser, env);
      const [author, elsewhere] = [await site.open('#/desk'), await site.open('#/desk')];
      for (const page of [author, elsewhere]) await logIn(page, 'ann', old);
      await author.getByRole('link', { name: 'Password' }).click();
      for (const [now, wanted, again, said] of [
        [old, next, old, 'The new passwords are not the same.'],
        [old, 'short', 'short', 'The password must have at least 12 characters.'],
        [next, next, next, 'wrong'],
        [old, next, next, 'The password is changed'],
      ] as const) {
        await author.getByLabel('The password of now').fill(now);
        await author.getByLabel('The new password', { exact: true }).fill(wanted);
        await author.getByLabel('The new password again').fill(again);
        await author.getByRole('button', { name: 'Change the password' }).click();
        await author.getByText(said).waitFor();
      }
      await author.getByRole('link', { name: 'Your posts' }).click();
      await author.getByRole('heading', { name: 'Drafts' }).waitFor();
      await elsewhere.getByRole('link', { name: 'Comments' }).click();
      await logIn(elsewhere, 'ann', next);
      await elsewhere.getByRole('heading', { name: 'Waiting for approval' }).waitFor();
      assert.deepEqual(site.strange(), []);
    },
  );

  it('asks a reader for an account where comments need one', async (t) => {
    const site = await startSite(t, browser, { COMMENTS: 'accounts' });
    const reader = await site.open(`#/post/${demoPost}`);
    await isLive(reader);
    await comment(reader, 'From an account.');
    await logIn(reader);
    await item(reader, 'From an account.').getByText('user').waitFor();
  });

  it('everybody can read and use it, at any width', async (t) => {
    const site = await startSite(t, browser);
    const page = await site.open('#/desk');
    await logIn(page, 'admin');
    const desk = ['#/desk', '#/desk/write', '#/desk/comments', '#/desk/password'];
    const views = ['#/', `#/post/${demoPost}`, ...desk];
    await page.evaluate(axe.source);
    for (const hash of views) {
      await page.evaluate(`location.hash = '${hash}'`);
      await page.locator('h1').waitFor();
      await page.waitForLoadState('networkidle');
      for (const [width, colorScheme] of [
        [1280, 'light'],
        [390, 'dark'],
      ] as const) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        const beyond = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.equal(beyond, 0, `${hash} at ${width}`);
        const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
        const found = violations.map(({ id, nodes }) => [id, nodes[0]?.html]);
        assert.deepEqual(found, [], hash);
      }
    }
  });
});
