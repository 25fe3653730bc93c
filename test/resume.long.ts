/**
 * Subscribers that are cut at random, and resume with the last id that they saw on any node, while
 * writers run on all nodes, and nodes or the database die: each has every comment once, in the
 * order stored (R41).
 */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { times } from './support/lists.ts';
import { rounds } from './support/long.ts';
import { skipPostgres as skip, startPostgres } from './support/postgres.ts';
import { catchUp, startPair } from './support/postgres-pair.ts';
import { type NodeProcess, startNode } from './support/program.ts';
import { after, nextOf, type Told, toQuery } from './support/resuming.ts';
import { askEvents } from './support/sse-client.ts';
import { connectReady } from './support/ws-clients.ts';

const seconds = rounds('RESUME_SECONDS', { short: 60, long: 60 });
const subscriberCount = 100;
const writerCount = 6;
const headers = { 'Content-Type': 'application/json' };

/** The nodes that run now; one that is killed is followed by another. */
interface Cluster {
  readonly nodes: NodeProcess[];
  /** True while there are writers, and subscribers are cut. */
  isOn: boolean;
}

const anyOf = <T>(all: readonly T[]): T =>
  all[Math.floor(Math.random() * all.length)] ?? assert.fail();
const portOf = ({ url }: NodeProcess): number => Number(new URL(url).port);

/** The events of one connection, until it is cut, over one of the transports. */
async function open(port: number, query: string) {
  if (Math.random() < 0.4) {
    const reader = await askEvents({ port }, query);
    return { next: async () => (await nextOf(reader)).told, cut: reader.leave };
  }
  const isOlder = Math.random() < 0.5;
  const client = await connectReady(port, isOlder ? { protocols: ['graphql-ws'] } : {});
  client.send({ id: '1', type: isOlder ? 'start' : 'subscribe', payload: { query } });
  return {
    next: async () => (await client.next()).payload as Told,
    cut: () => client.socket.terminate(),
  };
}

class Subscriber {
  /** Of the comments, in the order in which they came. */
  readonly ids: string[];
  connections = 0;
  refused: unknown;
  #cut = (): void => undefined;

  constructor(first: string) {
    this.ids = [first];
  }

  async run(cluster: Cluster, isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      try {
        await this.#connect(cluster);
      } catch {
        // The connection was cut, or its node is gone.
        await pause(20);
      }
    }
  }

  end(): void {
    this.#cut();
  }

  async #connect(cluster: Cluster): Promise<void> {
    const query = toQuery(after(this.ids.at(-1)));
    const { next, cut } = await open(portOf(anyOf(cluster.nodes)), query);
    this.#cut = cut;
    this.connections += 1;
    const timer = setTimeout(() => cluster.isOn && cut(), Math.random() * 6_000);
    try {
      for (;;) {
        const told = await next();
        const comment = told.data?.commentAdded;
        if (comment === undefined) this.refused ??= told;
        assert.ok(comment);
        this.ids.push(comment.id);
      }
    } finally {
      clearTimeout(timer);
      cut();
    }
  }
}

async function write(cluster: Cluster, path: string): Promise<number> {
  let acknowledged = 0;
  while (cluster.isOn) {
    const { url } = anyOf(cluster.nodes);
    const body = JSON.stringify({ content: 'x'.repeat(Math.random() < 0.02 ? 5_000 : 20) });
    const asked = fetch(`${url}${path}/comments`, { method: 'POST', headers, body });
    const response = await asked.catch(() => undefined);
    await response?.arrayBuffer().catch(() => undefined);
    if (response?.status === 201) acknowledged += 1;
    await pause(Math.random() * 200);
  }
  return acknowledged;
}

/** Kills a node every few seconds, and starts another. */
async function kill(cluster: Cluster, start: () => Promise<NodeProcess>): Promise<number> {
  let kills = 0;
  while (cluster.isOn) {
    await pause(5_000);
    const at = Math.floor(Math.random() * cluster.nodes.length);
    await cluster.nodes[at]?.signal('SIGKILL');
    kills += 1;
    cluster.nodes[at] = await start();
  }
  return kills;
}

/** `disturb` is called in the middle. */
async function churn(t: TestContext, url: string, disturb?: () => Promise<void>): Promise<void> {
  const start = () => startNode(t, { STORE_URL: url, STORE_TIMEOUT_SECONDS: '2' });
  const cluster: Cluster = { nodes: await Promise.all(times(3).map(start)), isOn: true };
  const post = async (path: string, body: object): Promise<string> => {
    const asked = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${cluster.nodes[0]?.url}${path}`, asked);
    return response.headers.get('location') ?? '';
  };
  const path = await post('/posts', { title: 'a', content: 'b' });
  const first = (await post(`${path}/comments`, { content: 'first' })).replace('/comments/', '');
  const subscribers = times(subscriberCount).map(() => new Subscriber(first));
  let isDone = false;
  const running = subscribers.map((subscriber) => subscriber.run(cluster, () => isDone));
  const writing = times(writerCount).map(() => write(cluster, path));
  const killing = kill(cluster, start);
  await pause(seconds * 500);
  await disturb?.();
  await pause(seconds * 500);
  cluster.isOn = false;
  const kills = await killing;
  const acknowledged = (await Promise.all(writing)).reduce((sum, count) => sum + count, 0);
  const response = await fetch(`${cluster.nodes[0]?.url}${path}/comments`);
  const stored = ((await response.json()) as { id: string }[]).map(({ id }) => id);
  const last = stored.at(-1);
  const end = performance.now() + 60_000;
  while (performance.now() < end && subscribers.some(({ ids }) => ids.at(-1) !== last)) {
    await pause(50);
  }
  // What would come a second time has the time to.
  await pause(1_500);
  isDone = true;
  for (const subscriber of subscribers) subscriber.end();
  await Promise.all(running);
  const connections = subscribers.reduce((sum, subscriber) => sum + subscriber.connections, 0);
  t.diagnostic(`${stored.length} comments, ${connections} connections, ${kills} nodes killed`);
  assert.ok(stored.length > acknowledged && acknowledged > 100);
  assert.ok(connections > subscriberCount * 2);
  for (const { ids, refused } of subscribers) {
    assert.equal(refused, undefined, JSON.stringify(ids));
    assert.deepEqual(ids, stored, JSON.stringify(ids));
  }
}

describe('subscribers that are cut and resume on any node', { skip }, () => {
  it('have every comment once, in the order stored, while nodes are killed', async (t) => {
    const server = await startPostgres();
    t.after(() => server.remove());
    await churn(t, await server.createDatabase());
  });

  it('have it also after a failover to a synchronous standby', async (t) => {
    const { primary, standby, url, promote } = await startPair(t);
    const admin = primary.url('postgres');
    await primary.query(admin, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await primary.query(admin, 'SELECT pg_reload_conf()');
    await catchUp(primary, standby);
    const disturb = async (): Promise<void> => {
      await primary.stop('SIGQUIT');
      await promote();
    };
    await churn(t, url, disturb);
  });
});
