/**
 * Servers that are killed in the middle of their work. INKWELL_KILLS says how often; a release is
 * tested with 100.
 */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { type NodeProcess, startNode } from '../support/node-process.js';
import { type PostgresServer, skipPostgres, startPostgres } from '../support/postgres.js';
import { skipSqlite } from '../support/sqlite.js';

const kills = Number(process.env['INKWELL_KILLS'] ?? '10');

/** What was asked for, and whether the answer said that it was done. */
interface Asked {
  readonly path: string | undefined;
  readonly text: string;
}

interface Ledger {
  readonly posts: Asked[];
  readonly comments: Asked[];
  acknowledgedChanges: number;
  changes: number;
}

const json = { 'Content-Type': 'application/json' };
const patch = { 'Content-Type': 'application/merge-patch+json' };

/** Writes until the server is gone. */
async function write(url: string, ledger: Ledger, label: string): Promise<void> {
  for (let count = 0; ; count += 1) {
    const text = `${label}-${count}`;
    const body = JSON.stringify({ title: text, content: text.repeat(20) });
    const post = await ask(`${url}/posts`, { method: 'POST', headers: json, body });
    ledger.posts.push({ path: post?.headers.get('location') ?? undefined, text });
    if (post?.status !== 201) return;
    const comment = await ask(`${url}${post.headers.get('location')}/comments`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ content: text }),
    });
    ledger.comments.push({ path: comment?.headers.get('location') ?? undefined, text });
    if (comment?.status !== 201) return;
    ledger.changes += 1;
    const change = await ask(`${url}/api/articles/1`, {
      method: 'PATCH',
      headers: patch,
      body: JSON.stringify({ [text]: true }),
    });
    if (change?.status !== 204) return;
    ledger.acknowledgedChanges += 1;
  }
}

/** Undefined where the connection ended before the answer. */
async function ask(url: string, init: RequestInit): Promise<Response | undefined> {
  try {
    const answer = await fetch(url, init);
    await answer.arrayBuffer();
    return answer;
  } catch {
    return undefined;
  }
}

interface Post {
  readonly id: string;
  readonly title: string;
  readonly content: string;
}

/** Every acknowledged write is there, none twice, none half. */
async function check(url: string, ledger: Ledger): Promise<void> {
  const posts = (await (await fetch(`${url}/posts`)).json()) as Post[];
  const byText = new Map<string, Post>();
  for (const post of posts) {
    assert.ok(!byText.has(post.title), `${post.title} is there twice`);
    byText.set(post.title, post);
  }
  for (const { path, text } of ledger.posts) {
    const post = byText.get(text);
    if (path !== undefined) assert.equal(`/posts/${post?.id}`, path, text);
    if (post !== undefined) assert.equal(post.content, text.repeat(20));
  }
  for (const { path, text } of ledger.comments.slice(-50)) {
    const post = byText.get(text);
    const answer = await fetch(`${url}/posts/${post?.id}/comments`);
    const comments = (await answer.json()) as { id: string; content: string }[];
    assert.ok(comments.length <= 1);
    if (path !== undefined) assert.equal(`/comments/${comments[0]?.id}`, path);
  }
  const article = (await (await fetch(`${url}/api/articles/1`)).json()) as Record<string, unknown>;
  const changes = Object.values(article).filter((value) => value === true).length;
  assert.ok(changes >= ledger.acknowledgedChanges && changes <= ledger.changes);
}

async function killAgainAndAgain(
  context: TestContext,
  start: () => Promise<readonly NodeProcess[]>,
): Promise<void> {
  const ledger: Ledger = { posts: [], comments: [], acknowledgedChanges: 0, changes: 0 };
  for (let round = 0; round < kills; round += 1) {
    const nodes = await start();
    const writing = nodes.flatMap(({ url }, node) =>
      [0, 1, 2, 3].map((writer) => write(url, ledger, `${round}-${node}-${writer}`)),
    );
    await new Promise((resolve) => {
      setTimeout(resolve, 100 + Math.random() * 300);
    });
    await Promise.all(nodes.map((node) => node.signal('SIGKILL')));
    await Promise.all(writing);
  }
  const [node] = await start();
  assert.ok(node !== undefined);
  await check(node.url, ledger);
  const acknowledged = ledger.posts.filter(({ path }) => path !== undefined).length;
  assert.ok(acknowledged > kills, 'the servers had no time to write anything');
  context.diagnostic(`${kills} kills, ${acknowledged} posts acknowledged`);
}

describe('a server that is killed', () => {
  it('has every acknowledged write in its file', { skip: skipSqlite }, async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'inkwell-durable-'));
    context.after(() => rm(folder, { recursive: true, force: true }));
    const env = { STORE_URL: `sqlite://${folder}/inkwell.db`, DEMO_DATA: 'false' };
    await killAgainAndAgain(context, async () => [await startNode(context, env)]);
  });

  describe('on PostgreSQL', { skip: skipPostgres }, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres();
    });
    after(() => server.remove());

    it('has every acknowledged write of two nodes in the database', async (context) => {
      const env = { STORE_URL: await server.createDatabase(), DEMO_DATA: 'false' };
      await killAgainAndAgain(context, () =>
        Promise.all([startNode(context, env), startNode(context, env)]),
      );
    });
  });
});
