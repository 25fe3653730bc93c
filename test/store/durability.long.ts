/**
 * Servers that are killed in the middle of their work. INKWELL_KILLS says how often; a release is
 * tested with 100.
 */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type NodeProcess, startNode } from '../support/program.ts';
import { durableStores } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';

const kills = Number(process.env['INKWELL_KILLS'] ?? '30');

/** What was asked for, and whether the answer said that it was done. */
interface Asked {
  readonly path: string | undefined;
  readonly text: string;
}

interface Ledger {
  readonly posts: Asked[];
  readonly comments: Asked[];
  readonly articles: Asked[];
  /** Members that article 1 was to get. */
  readonly changes: Asked[];
  readonly files: Asked[];
}

const json = { 'Content-Type': 'application/json' };
const patch = { 'Content-Type': 'application/merge-patch+json' };
const fileBytes = 200_000;

/** Writes until the server is gone. */
async function write(url: string, ledger: Ledger, label: string): Promise<void> {
  for (let count = 0; ; count += 1) {
    const text = `${label}-${count}`;
    const record = { title: text, content: text.repeat(20) };
    const post = await create(`${url}/posts`, record);
    ledger.posts.push({ path: post, text });
    if (post === undefined) return;
    const comment = await create(`${url}${post}/comments`, { content: text.repeat(20) });
    ledger.comments.push({ path: comment, text });
    if (comment === undefined) return;
    const article = await create(`${url}/api/articles`, record);
    ledger.articles.push({ path: article, text });
    if (article === undefined) return;
    const path = '/api/articles/1';
    const body = JSON.stringify({ [text]: text });
    const change = await ask(url + path, { method: 'PATCH', headers: patch, body });
    ledger.changes.push({ path: change?.status === 204 ? path : undefined, text });
    if (change?.status !== 204) return;
    const form = new FormData();
    form.append('part', new Blob([text.repeat(20).padEnd(fileBytes)]), text);
    const upload = await ask(`${url}/api/multiparts/list`, { method: 'POST', body: form });
    ledger.files.push({ path: upload?.ok ? `/api/multiparts/${text}` : undefined, text });
    if (upload?.ok !== true) return;
  }
}

/** The path of the new record, or undefined where it was not acknowledged. */
async function create(url: string, record: unknown): Promise<string | undefined> {
  const body = JSON.stringify(record);
  const response = await ask(url, { method: 'POST', headers: json, body });
  return response?.status === 201 ? (response.headers.get('location') ?? undefined) : undefined;
}

/** Undefined where the connection ended before the answer. */
async function ask(url: string, init: RequestInit): Promise<Response | undefined> {
  try {
    const response = await fetch(url, init);
    await response.arrayBuffer();
    return response;
  } catch {
    return undefined;
  }
}

interface Found {
  readonly id: string | number;
  readonly title?: string;
  readonly content: string;
}

/** Every acknowledged write is there, none twice, none half, and nothing that nobody asked for. */
async function check(url: string, ledger: Ledger): Promise<void> {
  const read = async <T>(path: string): Promise<T> => (await (await fetch(url + path)).json()) as T;
  const posts = await read<Found[]>('/posts');
  compare('/posts/', ledger.posts, posts);
  const comments: Found[] = [];
  for (const { id, title } of posts) {
    const found = await read<Found[]>(`/posts/${id}/comments`);
    comments.push(...found.map((comment) => ({ ...comment, title: title ?? '' })));
  }
  compare('/comments/', ledger.comments, comments);
  const articles = await read<Found[]>('/api/articles');
  compare('/articles/', ledger.articles, articles.slice(2)); // two are there from the start

  const files: Found[] = [];
  for (const [name, value] of await (await fetch(`${url}/api/multiparts`)).formData()) {
    const content = typeof value === 'string' ? value : await value.text();
    const isWhole = content.length === fileBytes;
    files.push({ id: name, title: name, content: isWhole ? content.trimEnd() : content });
  }
  compare('/api/multiparts/', ledger.files, files.slice(1)); // one is always there

  const changed = await read<Record<string, unknown>>('/api/articles/1');
  for (const { path, text } of ledger.changes) {
    if (path !== undefined || text in changed) assert.equal(changed[text], text, path);
  }
  const asked = new Set(ledger.changes.map(({ text }) => text));
  const members = Object.keys(changed).filter((name) => /^\d/.test(name));
  const unasked = members.filter((name) => !asked.has(name));
  assert.deepEqual(unasked, []);
}

/** The title is what a record is known by: of a comment that of its post. */
function compare(prefix: string, asked: readonly Asked[], found: readonly Found[]): void {
  const byTitle = new Map(found.map((record) => [record.title, record]));
  assert.equal(byTitle.size, found.length, `${prefix}: one is there twice`);
  for (const { path, text } of asked) {
    const record = byTitle.get(text);
    if (path !== undefined) assert.equal(`${prefix}${record?.id}`, path, text);
    if (record !== undefined) assert.equal(record.content, text.repeat(20), path);
    byTitle.delete(text);
  }
  assert.deepEqual([...byTitle.keys()], [], `${prefix}: nobody asked for these`);
}

function acknowledged(asked: readonly Asked[]): number {
  return asked.filter(({ path }) => path !== undefined).length;
}

function leastAcknowledged(ledger: Ledger): number {
  return Math.min(...Object.values(ledger as Ledger & Record<string, Asked[]>).map(acknowledged));
}

async function killAgainAndAgain(
  context: TestContext,
  start: () => Promise<readonly NodeProcess[]>,
): Promise<void> {
  const ledger: Ledger = { posts: [], comments: [], articles: [], changes: [], files: [] };
  for (let round = 0; round < kills; round += 1) {
    const nodes = await start();
    const writing = nodes.flatMap(({ url }, node) =>
      [0, 1, 2, 3].map((writer) => write(url, ledger, `${round}-${node}-${writer}`)),
    );
    const began = performance.now();
    await wait(100 + Math.random() * 300);
    // A slow machine gets the time to acknowledge two of each kind a round.
    while (leastAcknowledged(ledger) < 2 * (round + 1) && performance.now() - began < 10_000) {
      await wait(Math.random() * 50);
    }
    await Promise.all(nodes.map((node) => node.signal('SIGKILL')));
    await Promise.all(writing);
  }
  const [node] = await start();
  assert.ok(node !== undefined);
  await check(node.url, ledger);
  const counts = Object.entries(ledger).map(
    ([name, asked]: [string, Asked[]]) => `${acknowledged(asked)} ${name}`,
  );
  assert.ok(leastAcknowledged(ledger) > kills, `the servers had no time: ${counts.join(', ')}`);
  context.diagnostic(`${kills} kills, acknowledged: ${counts.join(', ')}`);
}

describe('servers that are killed', () => {
  for (const { name, skip, newUrl } of durableStores) {
    it(`have every acknowledged write ${name}, and each file whole`, { skip }, async (context) => {
      const UPLOAD_DIR = await createDirectory(context);
      const env = { STORE_URL: await newUrl(context), UPLOAD_DIR, DEMO_DATA: 'false' };
      const nodes = name === 'on PostgreSQL' ? [env, env] : [env];
      await killAgainAndAgain(context, () =>
        Promise.all(nodes.map((each) => startNode(context, each))),
      );
    });
  }
});
