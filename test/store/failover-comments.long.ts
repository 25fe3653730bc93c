/** A failover to a standby that lags: what the new primary has reaches every subscriber once. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { skipPostgres as skip } from '../support/postgres.js';
import { catchUp, detach, startPair } from '../support/postgres-pair.js';
import { watching } from '../support/watching.js';
import { driverOptions } from './driver-suite.js';

interface Node {
  readonly store: Store;
  readonly heard: string[];
}

async function open(context: TestContext, url: string): Promise<Node> {
  const store = await openStore(url, driverOptions());
  context.after(() => store.close());
  const heard: string[] = [];
  store.comments.watch?.(({ content }) => heard.push(content));
  await watching([store]);
  return { store, heard };
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) await pause(5);
}

/** Comments of another program, with the next numbers. */
function insert(word: string, count: number): string {
  return `INSERT INTO inkwell.comments (id, post_id, content, created_at)
    SELECT gen_random_uuid(), (SELECT id FROM inkwell.posts LIMIT 1), '${word} ' || n, ''
    FROM generate_series(1, ${count}) AS n`;
}

const texts = (word: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${word} ${at + 1}`);

describe('after a failover to a standby that lags', { skip }, () => {
  for (const [name, lost, more] of [
    ['fewer comments than were lost', 100, 10],
    ['more comments than were lost, under the same numbers', 100, 300],
  ] as const) {
    it(`nodes hear once of ${name}`, async (t) => {
      const { primary, standby, url, database, promote } = await startPair(t);
      const nodes = await Promise.all([open(t, url), open(t, url)]);
      const [first] = nodes;
      await first.store.posts.create({ title: 'a', content: 'b', authorId: null });
      await primary.query(primary.url(database), insert('kept', 7));
      await until(() => nodes.every(({ heard }) => heard.length === 7));
      await catchUp(primary, standby);
      await detach(standby);
      await primary.query(primary.url(database), insert('lost', lost));
      await until(() => nodes.every(({ heard }) => heard.length === 7 + lost));
      await primary.stop('SIGQUIT');
      await promote();
      await standby.query(standby.url(database), insert('new', more));
      const last = 7 + lost + more;
      await until(() => nodes.every(({ heard }) => heard.length >= last));
      const all = [...texts('kept', 7), ...texts('lost', lost), ...texts('new', more)];
      for (const { heard } of nodes) assert.deepEqual(heard, all);
    });
  }
});
