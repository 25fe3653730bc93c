/**
 * R40 when everything fails: a proxy loses requests and responses, nodes are killed and started
 * again, the database crashes. Clients send each write again, under its key, until it is answered:
 * each intent is one record or file, and what was acknowledged is there.
 */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { checkOnce, prepare, sendIntents } from './support/intents.ts';
import { rounds } from './support/long.ts';
import { startLossyProxy } from './support/lossy-proxy.ts';
import { type PostgresServer, skipPostgres, startPostgres } from './support/postgres.ts';
import { type NodeProcess, startNode } from './support/program.ts';
import { newSqliteFile, skipSqlite, toSqliteUrl } from './support/sqlite.ts';
import { createDirectory } from './support/uploads.ts';

interface Run {
  readonly env: Readonly<Record<string, string>>;
  readonly nodes: number;
  readonly intents: number;
  readonly killEverySeconds: number;
  readonly database?: PostgresServer;
}

async function runAll(t: TestContext, run: Run): Promise<void> {
  const { env, intents, database } = run;
  const nodes: NodeProcess[] = [];
  for (let at = 0; at < run.nodes; at += 1) nodes.push(await startNode(t, env));
  const portOf = ({ url }: NodeProcess): number => Number(new URL(url).port);
  const proxy = await startLossyProxy(t, () => nodes.map(portOf), 10);
  const places = await prepare(nodes[0]?.url ?? '');
  const started = performance.now();
  const sent = sendIntents(proxy.port, places, intents);
  let [kills, crashes] = [0, 0];
  const disturb = async (): Promise<void> => {
    while (sent.done() < intents) {
      await pause(run.killEverySeconds * 1_000);
      const at = Math.floor(Math.random() * nodes.length);
      await nodes[at]?.signal('SIGKILL');
      kills += 1;
      // A third and two thirds of the way through the database crashes, while a node is away.
      if (database !== undefined && sent.done() > ((crashes + 1) * intents) / 3 && crashes < 2) {
        crashes += 1;
        await database.stop('SIGQUIT');
        await database.start();
      }
      nodes[at] = await startNode(t, env);
    }
  };
  const [answers] = await Promise.all([sent.answers, disturb()]);
  await checkOnce(nodes[0]?.url ?? '', places, answers);
  const replayed = answers.filter(({ isReplayed }) => isReplayed).length;
  const attempts = answers.reduce((sum, answer) => sum + answer.attempts, 0);
  const seconds = ((performance.now() - started) / 1_000).toFixed(0);
  t.diagnostic(
    `${intents} intents, ${attempts} attempts, ${replayed} answers repeated, ${kills} kills, ` +
      `${crashes} crashes of the database, ${seconds} s, ${JSON.stringify(proxy.counts)}`,
  );
  assert.ok(replayed > 0 && kills > 0);
  if (database !== undefined) assert.equal(crashes, 2);
}

const length = { short: 12_000, long: 12_000 };

test('three nodes on PostgreSQL do each intent once', { skip: skipPostgres }, async (t) => {
  const database = await startPostgres(['autovacuum=off']);
  t.after(() => database.remove());
  const UPLOAD_DIR = await createDirectory(t);
  const STORE_URL = await database.createDatabase();
  const env = { STORE_URL, UPLOAD_DIR, STORE_TIMEOUT_SECONDS: '2' };
  const intents = rounds('ONCE_INTENTS', length);
  await runAll(t, { env, nodes: 3, intents, killEverySeconds: 2, database });
});

test('a server on SQLite does each intent once', { skip: skipSqlite }, async (t) => {
  const UPLOAD_DIR = await createDirectory(t);
  const env = { STORE_URL: toSqliteUrl(await newSqliteFile(t)), UPLOAD_DIR };
  const intents = rounds('ONCE_INTENTS', length) / 4;
  await runAll(t, { env, nodes: 1, intents, killEverySeconds: 2 });
});
