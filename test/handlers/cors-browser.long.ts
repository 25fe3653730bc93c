/** A page of another origin, in a browser that keeps to the rules, uses all of the service. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser, patienceMs, useBrowser } from '../support/browser.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** What a page is told of a response, or why it got none. */
interface Seen {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly failed?: string;
}

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

describe('a page on another port', { skip: noBrowser }, () => {
  const used = useBrowser({ env: { ALLOWED_ORIGINS: 'https://ui.example' } });
  const ends: (() => Promise<unknown>)[] = [];
  let open: TestServer;
  let page: Page;

  before(async () => {
    const pages = createServer((_incoming, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>page</title>');
    });
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
    ends.push(() => new Promise((resolve) => pages.close(resolve)));
    const ALLOWED_ORIGINS = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    open = await startServer({ after: (end) => ends.push(end) }, { env: { ALLOWED_ORIGINS } });
    page = await used.browser.newPage();
    page.setDefaultTimeout(patienceMs);
    await page.goto(ALLOWED_ORIGINS);
  });

  after(async () => {
    await page.close();
    for (const end of ends.toReversed()) await end();
  });

  const send = (url: string, sent: Sent = {}): Promise<Seen> =>
    page.evaluate(
      async ([to, init]): Promise<Seen> => {
        try {
          const response = await fetch(to, init);
          const headers = Object.fromEntries(response.headers);
          return { status: response.status, headers, text: await response.text() };
        } catch (error) {
          return { failed: String(error) };
        }
      },
      [url, sent] as const,
    );
  const json = (method: string, body: unknown, headers: Sent['headers'] = {}): Sent => ({
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

  it('writes, changes and removes a post with a token, and sees where it is', async () => {
    const account = { username: 'user', password: 'password' };
    const login = await send(`${open.url}/auth/login`, json('POST', account));
    const [, token] = /"access_token":"([^"]+)"/.exec(login.text ?? '') ?? [];
    const bearer = { Authorization: `Bearer ${token}` };
    const texts = { title: 'From a page', content: 'On another port.' };
    const made = await send(`${open.url}/posts`, json('POST', texts, bearer));
    assert.equal(made.status, 201);
    assert.ok(made.headers?.['x-request-id']);
    const url = `${open.url}${made.headers?.['location']}`;
    assert.equal((await send(url, json('PUT', { ...texts, title: 'Changed' }))).status, 204);
    assert.match((await send(url)).text ?? '', /"Changed"/);
    assert.equal((await send(url, { method: 'DELETE' })).status, 204);
    assert.equal((await send(url)).status, 404);
  });

  it('patches an article, and reads what is wrong with a patch', async () => {
    const type = { 'Content-Type': 'application/merge-patch+json' };
    const patch = (body: object): Sent => json('PATCH', body, type);
    const url = `${open.url}/api/articles/1`;
    assert.equal((await send(url, patch({ title: 'Patched' }))).status, 204);
    const refused = await send(url, patch({ title: 7 }));
    assert.equal(refused.status, 422);
    assert.match(refused.text ?? '', /"invalid_body"/);
    assert.equal((await send(`${open.url}/nothing`, patch({}))).status, 404);
  });

  it('asks GraphQL, and reads an event stream and a socket', async () => {
    const query = '{ allPosts { id } }';
    const { text } = await send(`${open.url}/graphql`, json('POST', { query }));
    const [, id] = /"id":"([^"]+)"/.exec(text ?? '') ?? [];
    const comments = `${open.url}/posts/${id}/comments`;
    const seen = await page.evaluate(listen, { url: open.url, comments });
    assert.match(seen.stream, /Heard on a page/);
    assert.match(seen.socket, /Heard on a page/);
  });

  it('gets nothing where its origin is not allowed', async () => {
    for (const sent of [{}, json('POST', { title: 'x', content: 'x' })]) {
      assert.match((await send(`${used.server.url}/posts`, sent)).failed ?? '', /Failed to fetch/);
    }
    const form = await page.evaluate(async (url) => {
      const body = new FormData();
      body.append('a', new Blob(['x']), 'a.txt');
      await fetch(url, { method: 'POST', mode: 'no-cors', body });
      return new Promise<string>((resolve) => {
        const socket = new WebSocket(`${url.replace('http', 'ws').split('/api')[0]}/graphql`);
        socket.addEventListener('open', () => resolve('open'));
        socket.addEventListener('close', () => resolve('closed'));
      });
    }, `${used.server.url}/api/multiparts/list`);
    assert.equal(form, 'closed');
    const stored = await (await used.server.fetch('/api/multiparts')).text();
    assert.ok(!stored.includes('a.txt'));
    assert.ok(!(await (await used.server.fetch('/posts')).text()).includes('"title":"x"'));
  });
});

/** In the page: the first comment that comes by both ways. */
async function listen({ url, comments }: { url: string; comments: string }) {
  const query = 'subscription { commentAdded { content } }';
  const stream = (async (): Promise<string> => {
    const headers = { Accept: 'text/event-stream' };
    const asked = `${url}/graphql?query=${encodeURIComponent(query)}`;
    const response = await fetch(asked, { headers });
    let text = '';
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.includes('event: next')) break;
    }
    return text;
  })();
  const socket = new Promise<string>((resolve) => {
    const opened = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    opened.addEventListener('open', () => opened.send('{"type":"connection_init"}'));
    opened.addEventListener('message', ({ data }) => {
      const text = String(data);
      if (text.includes('connection_ack')) {
        opened.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query } }));
      }
      if (text.includes('"next"')) resolve(text);
    });
  });
  // Nothing tells a page that a subscription has begun, and late ones get no replay.
  const again = setInterval(() => {
    const headers = { 'Content-Type': 'application/json' };
    const body = JSON.stringify({ content: 'Heard on a page' });
    void fetch(comments, { method: 'POST', headers, body });
  }, 250);
  const seen = { stream: await stream, socket: await socket };
  clearInterval(again);
  return seen;
}
