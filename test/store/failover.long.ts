/** A failover to a standby that lags: what the new primary has reaches every subscriber once. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fanOut } from '../support/fan-out.ts';
import { times } from '../support/lists.ts';
import { rounds } from '../support/long.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { catchUp, detach, startPair } from '../support/postgres-pair.ts';
import { startNode } from '../support/program.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { watching } from '../support/watching.ts';

const comments = rounds('FAILOVER_COMMENTS', { short: 1_000, long: 1_000 });
const load = { subscribers: 6, comments, writers: 8 };

describe('nodes under load, after a failover', { skip }, () => {
  for (const [lagMilliseconds, end] of [
    [0, 'killed'],
    [300, 'killed'],
    [2_000, 'killed'],
    [300, 'silent'],
  ] as const) {
    it(`with a lag of ${lagMilliseconds} ms and a ${end} primary, hear of what is there once`, async (context) => {
      const { primary, standby, url, promote } = await startPair(context);
      const env = { STORE_URL: url, STORE_TIMEOUT_SECONDS: '2' };
      const nodes = await Promise.all([1, 2].map(() => startNode(context, env)));
      const disturb = async (): Promise<void> => {
        await catchUp(primary, standby);
        await detach(standby);
        await pause(lagMilliseconds);
        if (end === 'killed') await primary.stop('SIGQUIT');
        else await primary.signal('SIGSTOP');
        await promote();
      };
      const { stored, asked, heard } = await fanOut({ nodes, ...load, disturb });
      const there = new Set(stored);
      const doubled = heard.map((ids) => ids.length - new Set(ids).size);
      // In the stored order, between those that only the old primary had.
      for (const [at, ids] of heard.entries()) {
        const stillThere = ids.filter((id) => there.has(id));
        assert.deepEqual(stillThere, stored, `ids ${at}`);
      }
      assert.deepEqual(new Set(doubled), new Set([0]));
      const refused = asked.filter(({ status }) => status !== 201);
      for (const { status } of refused) assert.equal(status, 503, `${status}`);
    });
  }
});

/** A node, and the texts of the comments that it hears of, beside what it logs. */
async function listen(context: TestContext, url: string) {
  const store = await openOn(context, url);
  const heard: string[] = [];
  store.comments.watch(({ comment: { content } }) => heard.push(content));
  await watching([store]);
  return { store, heard };
}

/** Comments of another program, with the next numbers. */
function insert(word: string, count: number): string {
  return `INSERT INTO inkwell.comments (id, post_id, content, created_at)
    SELECT gen_random_uuid(), (SELECT id FROM inkwell.posts LIMIT 1), '${word} ' || n, ''
    FROM generate_series(1, ${count}) AS n`;
}

const texts = (word: string, count: number): readonly string[] =>
  times(count).map((at) => `${word} ${at + 1}`);

describe('after a failover to a standby that lags', { skip }, () => {
  for (const [name, lost, more] of [
    ['fewer comments than were lost', 100, 10],
    ['more comments than were lost, under the same numbers', 100, 300],
  ] as const) {
    it(`nodes hear once of ${name}`, async (t) => {
      const { primary, standby, url, database, promote } = await startPair(t);
      const nodes = await Promise.all([listen(t, url), listen(t, url)]);
      const [first] = nodes;
      await first.store.posts.create({ title: 'a', content: 'b', authorId: null });
      await primary.query(primary.url(database), insert('kept', 7));
      await until('seven comments on each node', () =>
        nodes.every(({ heard }) => heard.length === 7),
      );
      await catchUp(primary, standby);
      await detach(standby);
      await primary.query(primary.url(database), insert('lost', lost));
      await until('the comments of the outage on each node', () =>
        nodes.every(({ heard }) => heard.length === 7 + lost),
      );
      await primary.stop('SIGQUIT');
      await promote();
      await standby.query(standby.url(database), insert('new', more));
      const last = 7 + lost + more;
      await until('the last comment on each node', () =>
        nodes.every(({ heard }) => heard.length >= last),
      );
      const all = [...texts('kept', 7), ...texts('lost', lost), ...texts('new', more)];
      for (const { heard } of nodes) assert.deepEqual(heard, all, JSON.stringify(heard));
    });
  }
});

describe('a node at a standby', { skip }, () => {
  it('announces nothing old when that is promoted', async (t) => {
    const { primary, standby, url, database, leadToStandby, promote } = await startPair(t);
    const node = await openOn(t, url);
    await node.posts.create({ title: 'a', content: 'b', authorId: null });
    await primary.query(primary.url(database), insert('old', 60));
    await catchUp(primary, standby);
    leadToStandby();
    await primary.stop('SIGQUIT');
    const heard: string[] = [];
    node.comments.watch(({ comment: { content } }) => heard.push(content));
    await until('the node at the standby', async () =>
      Promise.resolve(node.comments.ready?.()).then(
        () => true,
        () => false,
      ),
    );
    await promote();
    await standby.query(standby.url(database), insert('new', 1));
    await until('the new comment', () => heard.length > 0);
    assert.deepEqual(heard, ['new 1']);
  });
});
