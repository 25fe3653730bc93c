/** Several server processes on one PostgreSQL. */

import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { assertWhole, fanOut } from '../support/fan-out.js';
import { type NodeProcess, startNode } from '../support/program.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';

describe('nodes on one PostgreSQL', { skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.remove());

  async function startNodes(context: TestContext, count: number): Promise<NodeProcess[]> {
    const env = { STORE_URL: await server.createDatabase(), STORE_TIMEOUT_SECONDS: '2' };
    return Promise.all(Array.from({ length: count }, () => startNode(context, env)));
  }

  it('tell all subscribers of all comments, once and in one order', async (context) => {
    const nodes = await startNodes(context, 3);
    assertWhole(await fanOut({ nodes, subscribers: 30, comments: 300, writers: 12 }));
  });

  it('do so when PostgreSQL is restarted', async (context) => {
    const nodes = await startNodes(context, 3);
    const disturb = async (): Promise<void> => {
      await server.stop('SIGINT');
      await server.start();
    };
    assertWhole(await fanOut({ nodes, subscribers: 12, comments: 400, writers: 6, disturb }));
  });

  it('do so when all their connections are cut', async (context) => {
    const nodes = await startNodes(context, 2);
    const disturb = async (): Promise<void> => {
      await server.cutConnections();
      await server.cutConnections();
    };
    assertWhole(await fanOut({ nodes, subscribers: 12, comments: 400, writers: 6, disturb }));
  });

  it('see each other’s records, and stop cleanly', async (context) => {
    const [one, other] = await startNodes(context, 2);
    const response = await fetch(`${one?.url}/posts`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ title: 'Here', content: 'and there' }),
    });
    const path = response.headers.get('location');
    assert.equal((await fetch(`${other?.url}${path}`)).status, 200);
    assert.equal((await fetch(`${other?.url}${path}`, { method: 'DELETE' })).status, 204);
    assert.equal((await fetch(`${one?.url}${path}`)).status, 404);
    await one?.signal('SIGTERM');
    assert.equal(one?.logged.at(-1)?.['event'], 'stopped');
  });

  it('answer 503 with Retry-After while PostgreSQL is away', async (context) => {
    const [node] = await startNodes(context, 1);
    await server.stop();
    try {
      const response = await fetch(`${node?.url}/posts`);
      assert.equal(response.status, 503);
      assert.ok(Number(response.headers.get('retry-after')) > 0);
      assert.equal(((await response.json()) as { code: string }).code, 'unavailable');
      assert.equal((await fetch(`${node?.url}/hello`)).status, 200);
    } finally {
      await server.start();
    }
  });
});
