/** What people with a screen reader or without a mouse need of the pages (WCAG 2.2). */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { noBrowser, openWatchedPage, useBrowser } from '../support/browser.ts';
import { until } from '../support/until.ts';

const operation = '#operations-posts-createPost .opblock-summary-control';
/**
 * Each page, what it shows once its scripts have drawn it, and what is pressed then: in the reference
 * an operation that is tried out under the dialog for a token, in the browser UI a result beside the
 * documentation.
 */
const pages = [
  { path: '/', shown: 'main', used: [] },
  { path: '/docs/', shown: '.opblock', used: [operation, '.try-out__btn', '.btn.authorize'] },
  {
    path: '/graphql-ui/',
    shown: '.window-switcher__item--active',
    used: ['.send-request__button', '[track-id=show_docs]', '.no-link-link'],
  },
] as const;

/** axe does not judge text over a gradient. */
const flatten = `(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('* { background-image: none !important }');
  document.adoptedStyleSheets = [sheet];
})()`;

/** More than the longest page has stops of Tab. */
const stopsMax = 250;

/** Marks what has the focus, and returns its name; nothing at the end of the page. */
const markFocused = `(() => {
  const focused = document.activeElement;
  if (focused === document.body) return undefined;
  focused.dataset.reached = 'yes';
  return focused.getAttribute('aria-label') ?? focused.textContent.trim();
})()`;

/**
 * What can be clicked and has no focus, nor anything around or within it. The arrow keys reach the
 * other tabs of a list; the viewer's arrows do what the button beside them does.
 */
const listMissed = `[...document.querySelectorAll('*')]
  .filter((element) =>
    element.matches('a[href], button, input, select, textarea, summary, [tabindex], [role=button]') ||
    (getComputedStyle(element).cursor === 'pointer' &&
      getComputedStyle(element.parentElement).cursor !== 'pointer'))
  .filter((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
  .filter((element) => element.getBoundingClientRect().width > 1 && !element.disabled)
  .filter((element) => !element.closest('[data-reached]') && !element.querySelector('[data-reached]'))
  .filter((element) => !element.closest('.opblock-control-arrow'))
  .filter((element) => !element.closest('.ant-tabs-tab:not(.ant-tabs-tab-active)'))
  .map((element) => element.outerHTML.slice(0, 150))`;

describe('the pages for everybody', { skip: noBrowser }, () => {
  const used = useBrowser();

  async function open(
    { path, shown }: (typeof pages)[number],
    colorScheme: 'light' | 'dark',
  ): Promise<Page> {
    const { page } = await openWatchedPage(used.browser);
    await page.emulateMedia({ colorScheme });
    await page.goto(`${used.server.url}${path}`);
    await page.locator(shown).first().waitFor();
    return page;
  }

  /** Pages draw more after their first sight. */
  async function assertNoneLeft(look: () => Promise<readonly string[]>): Promise<void> {
    let found: readonly string[] = [];
    const isNone = async (): Promise<boolean> => (found = await look()).length === 0;
    await until('nothing is found', isNone).catch(() => assert.deepEqual(found, []));
  }

  async function findWithAxe(page: Page): Promise<string[]> {
    const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
    return violations
      .filter(({ impact }) => impact === 'critical' || impact === 'serious')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  }

  /** Presses Tab from the beginning of the page to its end. */
  async function walk(page: Page): Promise<string[]> {
    const names: string[] = [];
    for (let stop = 0; stop < stopsMax; stop += 1) {
      await page.keyboard.press('Tab');
      const name = await page.evaluate<string | undefined>(markFocused);
      if (name === undefined) return names;
      names.push(name);
      // In an editor Tab indents, unless Escape was pressed before.
      await page.keyboard.press('Escape');
    }
    throw new Error(`No end of the page after ${stopsMax} stops.`);
  }

  for (const shown of pages) {
    for (const scheme of ['light', 'dark'] as const) {
      it(`axe finds nothing critical or serious on ${shown.path}, ${scheme}`, async () => {
        const page = await open(shown, scheme);
        await page.evaluate(axe.source);
        await page.evaluate(flatten);
        await assertNoneLeft(() => findWithAxe(page));
        for (const pressed of shown.used) {
          await page.locator(pressed).first().click();
          await assertNoneLeft(() => findWithAxe(page));
        }
        await page.close();
      });
    }

    it(`Tab reaches all of ${shown.path} that can be clicked`, async () => {
      const page = await open(shown, 'light');
      await assertNoneLeft(async () => {
        await walk(page);
        return page.evaluate<string[]>(listMissed);
      });
      await page.close();
    });
  }

  it('the documentation of the browser UI is opened, followed and closed by the keyboard', async () => {
    const page = await open(pages[2], 'light');
    await page.locator('[track-id=show_docs]').press('Enter');
    for (const name of ['Query', 'allPosts', 'PostStatus', 'arrow left', 'Close']) {
      const buttons = page.locator('app-doc-viewer').getByRole('button', { name, exact: true });
      await buttons.first().press('Enter');
    }
    await page.locator('app-doc-viewer').waitFor({ state: 'hidden' });
    await page.close();
  });

  it('Tab goes through the examples of the browser UI in the order of their reading', async () => {
    const page = await open(pages[2], 'light');
    const examples = ['Posts', 'Comments, live', 'Add a comment', 'Create a post', 'Upload'];
    const names = (await walk(page)).filter((name) => examples.includes(name));
    assert.deepEqual(names, examples);
    await page.close();
  });
});
