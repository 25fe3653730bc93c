/** Uploaded files in a browser (R45): pictures are shown, and nothing that was uploaded runs. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { before, describe, it } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { noBrowser, patienceMs, useBrowser } from '../support/browser.ts';
import { file, form, postForm } from '../support/files.ts';
import type { TestServer } from '../support/server.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const svgRoot = 'svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"';
const picture = `<${svgRoot}><style>rect{fill:red}</style><rect width="9" height="9"/></svg>`;

/** Leaves a mark everywhere that it may. */
const attack = `
  try { localStorage.setItem('mark', 'script') } catch {}
  try { document.cookie = 'mark=script; path=/' } catch {}
  try { top.mark = 'script'; parent.mark = 'script' } catch {}
  fetch('/hello?mark=script').catch(() => {});
  new Image().src = '/hello?mark=image';`;
const script = `<script>${attack}</script>`;
const html = `<!doctype html><html><body>${script}<img src="x" onerror="${attack.replaceAll('\n', '')}">
  <iframe src="/hello?mark=frame"></iframe><iframe srcdoc="${script.replaceAll('"', '&quot;')}"></iframe>
  <meta http-equiv="refresh" content="0;url=/hello?mark=refresh"></body></html>`;
const xhtmlRoot = 'html xmlns="http://www.w3.org/1999/xhtml"';
const xhtml = `<${xhtmlRoot}><body>${script.replaceAll('&', '&amp;').replaceAll('=>', '=&gt;')}</body></html>`;
const svgScript = `<script><![CDATA[${attack}]]></script>`;
const svgAttack = `<${svgRoot} onload="fetch('/hello?mark=onload')">${svgScript}
  <style>@import "/hello?mark=import"; rect { fill: url(/hello?mark=style#a) }</style>
  <rect width="9" height="9"/><image href="/hello?mark=image" width="9" height="9"/>
  <use href="/files/attack.svg?mark=use#a"/>
  <a href="javascript:fetch('/hello?mark=link')"><animate attributeName="href" values="javascript:1"/></a>
  <foreignObject width="9" height="9"><body xmlns="http://www.w3.org/1999/xhtml">
    <script><![CDATA[${attack}]]></script><img src="x" onerror="fetch('/hello?mark=onerror')"/>
    <iframe src="/hello?mark=frame"/><object data="/hello?mark=object"/>
    <embed src="/hello?mark=embed"/><video src="/hello?mark=video"/>
    <link rel="stylesheet" href="/hello?mark=sheet"/>
    <meta http-equiv="refresh" content="0;url=/hello?mark=refresh"/>
    <form action="/hello?mark=form"><input autofocus="" onfocus="fetch('/hello?mark=focus')"/></form>
  </body></foreignObject></svg>`;
const xsl = `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:template match="/"><${xhtmlRoot}><body><script>fetch('/hello?mark=xsl')</script></body></html>
  </xsl:template></xsl:stylesheet>`;
const all = (extensions: string, content: string) =>
  Object.fromEntries(extensions.split(' ').map((one) => [`attack.${one}`, content]));
const styled = (href: string): string =>
  `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="${href}"?>`;
const pdf = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.launchURL\\("/hello?mark=pdf"\\))>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
%%EOF`;

/** What somebody uploads who wants that it runs. */
const attacks: Readonly<Record<string, Buffer | string>> = {
  ...all('html htm svg.html shtml png txt mp4 ico', html),
  ...all('xhtml xhtml.svg own.xml', xhtml),
  ...all('svg svg.unknown svg.png svg.txt', svgAttack),
  ...all('js js.txt', attack),
  'attack-html.svg': html,
  'attack-xsl.svg': `${styled('/files/attack.xsl')}<${svgRoot}/>`,
  'attack-data-xsl.svg': `${styled(`data:text/xml,${encodeURIComponent(xsl)}`)}<${svgRoot}/>`,
  'attack.xml': `${styled('/files/attack.xsl')}<a/>`,
  'attack.xsl': xsl,
  attack: svgAttack,
  'attack.gif': Buffer.concat([Buffer.from('GIF89a=1;/*'), gif, Buffer.from(`*/;${attack}`)]),
  'attack-html.gif': Buffer.concat([gif, Buffer.from(html)]),
  'attack.pdf': pdf,
  'attack-html.pdf': `${pdf}${html}`,
  'attack.css': 'body { background: url(/hello?mark=css) }',
  'attack.mhtml': `MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n${html}`,
  'attack.swf': 'FWS',
};

describe('uploaded files in a browser', { skip: noBrowser }, () => {
  const used = useBrowser();
  let server: TestServer;
  let browser: Browser;
  let context: BrowserContext;
  /** The addresses with a mark that were asked for. */
  let marks: string[];

  before(async () => {
    ({ server, browser } = used);
    const shown = {
      'a.png': png,
      'a.gif': gif,
      'a.svg': picture,
      'a b&ä.svg': picture,
      'a.txt': 'grüß <b>Gott</b>',
    };
    const parts = Object.entries({ ...shown, ...attacks }).map(([name, content]) => [
      name,
      file(content, name),
    ]);
    assert.equal((await postForm(server, 'list', form(Object.fromEntries(parts)))).status, 200);
  });

  /** A page of this origin without a policy, which a file would have in its hand. */
  const openBlank = async (): Promise<Page> => {
    context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patienceMs);
    marks = [];
    const note = (url: string): void => {
      if (url.includes('mark=')) marks.push(url);
    };
    context.on('requestfinished', (request) => note(request.url()));
    // Also what came and was not used, but not what the browser has stopped and never sent.
    context.on('requestfailed', (request) => {
      const { errorText = '' } = request.failure() ?? {};
      if (!['csp', 'origin'].includes(errorText)) note(request.url());
    });
    for (const [path, contentType, body] of [
      ['blank', 'text/html', '<title>blank</title>'],
      ['unguarded.svg', 'image/svg+xml', svgAttack],
      ['unguarded.html', 'text/html', html],
    ] as const) {
      await context.route(`${server.url}/${path}`, (route) => route.fulfill({ contentType, body }));
    }
    await page.goto(`${server.url}/blank`);
    return page;
  };
  const readMarks = async (page: Page): Promise<readonly string[]> => {
    const kept = await page.evaluate<string[]>(
      `[globalThis.mark ?? '', localStorage.getItem('mark') ?? '', document.cookie]`,
    );
    return [...marks, ...kept].filter((mark) => mark !== '');
  };
  /** Shows a file in an element; fulfilled when it is there, or does not come. */
  const embed = (page: Page, tag: string, path: string): Promise<void> =>
    page.evaluate(`new Promise((resolve) => {
      const element = document.createElement('${tag}');
      element.onload = element.onerror = () => resolve();
      // An attachment in a frame gives no event.
      setTimeout(resolve, 1_000);
      if ('${tag}' === 'link') element.rel = 'stylesheet';
      const name = { object: 'data', link: 'href' }['${tag}'] ?? 'src';
      element.setAttribute(name, '${path}');
      document.body.append(element);
    })`);
  const widthOf = (page: Page, url: string): Promise<number> =>
    page.evaluate(`(async () => {
      const image = new Image();
      image.src = '${url}';
      document.body.append(image);
      await image.decode().catch(() => undefined);
      return image.naturalWidth;
    })()`);

  it('shows pictures in <img>, on a page of this origin under its policy, and of another', async (t) => {
    const pages = createServer((_incoming, response) => {
      // Such a page loads only what allows it.
      const headers = {
        'Content-Type': 'text/html',
        'Cross-Origin-Embedder-Policy': 'require-corp',
      };
      response.writeHead(200, headers).end('<title>page</title>');
    });
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
    t.after(() => pages.close());
    const other = `http://localhost:${(pages.address() as AddressInfo).port}/`;
    const page = await browser.newPage();
    for (const address of [`${server.url}/`, other]) {
      await page.goto(address);
      for (const [name, width] of [
        ['a.png', 1],
        ['a.gif', 1],
        ['a.svg', 9],
        ['a b&ä.svg', 9],
        ['attack.html', 0],
      ] as const) {
        const url = `${server.url}/files/${encodeURIComponent(name)}`;
        assert.equal(await widthOf(page, url), width, `${name} on ${address}`);
      }
    }
    await page.close();
  });

  it('shows a text as it is, in UTF-8', async () => {
    const page = await openBlank();
    await page.goto(`${server.url}/files/a.txt`);
    assert.equal(await page.locator('body').innerText(), 'grüß <b>Gott</b>');
    await context.close();
  });

  it('would see what runs: the same files without the policy', async () => {
    for (const [path, least] of [
      [
        '/unguarded.svg',
        ['script', 'onload', 'onerror', 'frame', 'image', 'import', 'sheet', 'style', 'refresh'],
      ],
      ['/unguarded.html', ['script', 'frame', 'image']],
    ] as const) {
      const page = await openBlank();
      await embed(page, 'iframe', path);
      await page.waitForFunction(`'mark' in globalThis`);
      await page.waitForLoadState('networkidle');
      const seen = await readMarks(page);
      for (const mark of [...least, 'mark=script']) {
        assert.ok(
          seen.some((each) => each.endsWith(mark)),
          `${path} ${mark}: ${seen.join(' ')}`,
        );
      }
      assert.ok(seen.includes('script'), 'the window and the storage of this origin');
      await context.close();
    }
  });

  for (const name of Object.keys(attacks)) {
    it(`${name}: opened, or in an element, runs nothing and reaches nothing`, async () => {
      const path = `/files/${name}`;
      const page = await openBlank();
      for (const tag of ['iframe', 'object', 'embed', 'img', 'video', 'script', 'link']) {
        await embed(page, tag, path);
      }
      const started = await page.evaluate(`Promise.all([
        navigator.serviceWorker.register('${path}').then(() => 'registered', () => 'refused'),
        import('${path}').then(() => 'imported', () => 'refused'),
        new Promise((resolve) => {
          const worker = new Worker('${path}');
          worker.onerror = () => resolve('refused');
          setTimeout(() => resolve('started'), 5_000);
        }),
      ])`);
      assert.deepEqual(started, ['refused', 'refused', 'refused']);
      // What it is shown in is of another origin. The viewers of PDF and of films are of this one in
      // Chromium: documents of the browser, with nothing of the file.
      const reached = await page.evaluate<string[]>(`
        [...document.querySelectorAll('iframe, object, embed')].flatMap(({ contentDocument }) =>
          ['about:blank', undefined].includes(contentDocument?.URL)
            ? [] : contentDocument.documentElement.outerHTML)`);
      assert.deepEqual(
        /\.(?:pdf|mp4)$/.test(path) ? reached.filter((text) => /script|mark/.test(text)) : reached,
        [],
      );
      assert.deepEqual(await readMarks(page), [], name);
      // Opened directly: what is not shown is a download.
      const opened = await page.goto(`${server.url}${path}`).catch(() => undefined);
      await page.waitForLoadState('load');
      if (opened !== undefined) {
        const urls = page.frames().map((frame) => frame.url());
        assert.equal(
          urls.slice(1).find((url) => url.startsWith(server.url)),
          undefined,
          name,
        );
      }
      await page.goto(`${server.url}/blank`);
      assert.deepEqual(await readMarks(page), [], name);
      await context.close();
    });
  }
});
