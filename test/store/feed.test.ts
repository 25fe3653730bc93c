/** When a node polls and notifies, and what it takes for true: by a database that is made up here. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { type Server, type Statement } from '../../dist/store/postgres/connection.js';
import { CommentOrder } from '../../dist/store/postgres/comment-order.js';
import { poll as readPoll } from '../../dist/store/postgres/feed/comment-poll.js';
import { CommentFeed } from '../../dist/store/postgres/feed.js';
import type { Pool } from '../../dist/store/postgres/pool.js';
import { times } from '../support/lists.ts';
import { testAtLength } from '../support/long.ts';
import { until } from '../support/until.ts';

type Connect = Parameters<Server['connect']>[0];

interface Poll {
  readonly seqs?: readonly number[];
  readonly last: number;
  readonly timeline?: number;
  readonly back?: number;
  /** The oldest transaction under way, where a number is missing that 7 may still bring. */
  readonly oldest?: number;
}

const toRow = (seq: number) => [`${seq}`, 'p', '', '', seq, 0];

/** What each poll finds is set by `found`. */
function open(t: TestContext, options: { listens?: boolean; timeline?: number } = {}) {
  const { listens = false, timeline = 1 } = options;
  const state = { polls: 0, notified: 0, listened: 0, heard: '' };
  const [lines, seconds]: [string[], number[]] = [[], []];
  let found: Poll = { last: 0, timeline };
  let notify: (from?: string) => void = () => undefined;
  let lose: () => void = () => undefined;
  const pool = {
    read: ({ values }: Statement) => {
      if (values.length === 0) return Promise.resolve([{ last: 0, timeline, skipped: '[]' }]);
      state.polls += 1;
      const { seqs = [], oldest = 8, back = 0, ...rest } = found;
      const cursor = Number(values[1]);
      const comments = JSON.stringify(seqs.filter((seq) => seq > cursor).map(toRow));
      return Promise.resolve([{ timeline, ...rest, comments, oldest, xid: 8, back }]);
    },
    write: () => {
      state.notified += 1;
      return Promise.resolve([]);
    },
  };
  const connect = (asked: Connect): ReturnType<Server['connect']> => {
    const { statementSeconds, onNotification, onClosed } = asked;
    seconds.push(statementSeconds);
    notify = (from = 'another node') => onNotification?.(from);
    let isLost = false;
    lose = () => {
      isLost = true;
      onClosed?.();
    };
    return Promise.resolve({
      run: (_statement, done) => {
        if (isLost) return done(new Error('the connection is closed'));
        state.listened += 1;
        done(undefined, { columns: [], cells: [] });
      },
      runScript: () => Promise.resolve(),
      end: () => undefined,
    });
  };
  const server: Server = { address: '192.0.2.1:5432', hasSessions: true, connect };
  const feed = new CommentFeed({
    pool: pool as unknown as Pool, // nothing else is asked for
    versions: { track: (result) => result },
    listenServer: listens ? server : undefined,
    log: (_level, event) => void lines.push(event),
    timeoutSeconds: 5,
  });
  t.after(() => feed.close());
  feed.watch(({ id }) => (state.heard += ` ${id}`));
  const polls = async (count: number): Promise<void> => {
    const end = state.polls + count;
    await until(`${count} more polls`, () => state.polls >= end);
  };
  return {
    feed,
    state,
    lines,
    seconds,
    polls,
    notify: () => notify(),
    lose: () => lose(),
    find: (poll: Poll) => (found = poll),
  };
}

test('without a reason a node polls once a second, ten times where it hears nothing', async (t) => {
  const [deaf, hearing] = [open(t), open(t, { listens: true })];
  await hearing.polls(2); // at the start, and when it began to listen
  const before = hearing.state.polls;
  await deaf.polls(15);
  const polls = hearing.state.polls - before;
  assert.ok(polls >= 1 && polls <= 3, `${polls} polls while a deaf node polled 15 times`);
});

test('a poll of 500 comments is followed by another one', async () => {
  const row = { comments: JSON.stringify(times(500).map(toRow)), oldest: 8, xid: 8 };
  const pool = { read: () => Promise.resolve([{ ...row, last: 500, timeline: 1 }]) };
  const order = new CommentOrder({
    cursor: 0,
    skipped: [],
    timeline: 1,
    deliver: () => undefined,
    clock: () => 0,
    gapMillisecondsMax: 1,
  });
  const deps = { pool: pool as unknown as Pool, versions: { track: <T>(rows: T) => rows } };
  assert.equal((await readPoll(deps, order)).isWhole, false);
});

test('a comment is notified after 5 ms, with those that are stored meanwhile', (t) => {
  const { feed } = open(t, { listens: true });
  const timers = t.mock.method(globalThis, 'setTimeout');
  for (const seq of [1, 2]) {
    const comment = { id: `${seq}`, content: '', createdAt: '', postId: 'p' };
    feed.stored({ seq, timeline: 1, comment });
  }
  const delays = timers.mock.calls.map(({ arguments: [, milliseconds] }) => milliseconds);
  assert.deepEqual(delays, [5]);
});

test('notifications lead to one poll in 90 ms at most', async (t) => {
  const { state, notify, polls } = open(t, { listens: true });
  await polls(2);
  const [before, since] = [state.polls, performance.now()];
  while (performance.now() - since < 600) {
    notify();
    await new Promise(setImmediate);
  }
  const [count, milliseconds] = [state.polls - before, performance.now() - since];
  assert.ok(count <= milliseconds / 85 + 2, `${count} polls in ${milliseconds} ms`);
  assert.ok(count >= 2, `${count} polls`);
});

test('comments that follow each other are notified once in 100 ms at most', async (t) => {
  const { state, feed, polls } = open(t, { listens: true });
  await polls(1);
  const since = performance.now();
  for (let seq = 1; performance.now() - since < 600; seq += 1) {
    const comment = { id: `${seq}`, content: '', createdAt: '', postId: 'p' };
    feed.stored({ seq, timeline: 1, comment });
    await new Promise(setImmediate);
  }
  const milliseconds = performance.now() - since;
  assert.ok(state.notified <= milliseconds / 95 + 2, `${state.notified} in ${milliseconds} ms`);
  assert.ok(state.notified >= 2, `${state.notified}`);
  // Its own comments need no poll.
  assert.match(state.heard, /^ 1 2 3 4 5 /);
});

test('after a lost connection it listens again, and polls, because it may have missed some', async (t) => {
  const { state, seconds, lose, polls } = open(t, { listens: true });
  await polls(2);
  assert.equal(state.listened, 1);
  lose();
  await until('a second LISTEN', () => state.listened === 2, 4);
  await polls(1);
  assert.deepEqual(seconds, [4, 4], 'the time in which a check is answered');
});

test('a gap is waited for until 10 s after the time limit of a statement', async (t) => {
  const start = performance.now();
  let now = start;
  const { state, find, polls } = open(t);
  await polls(1);
  t.mock.method(performance, 'now', () => now);
  find({ seqs: [2, 3], last: 3, oldest: 7 });
  await polls(2);
  now = start + 14_900;
  await polls(3);
  assert.equal(state.heard, '');
  now = start + 15_100;
  await polls(3);
  assert.equal(state.heard, ' 2 3');
});

test('a gap ends when no transaction is under way that could fill it', async (t) => {
  const { state, find, polls } = open(t);
  await polls(1);
  find({ seqs: [2, 3], last: 3, oldest: 7 });
  // Not ten times a second: what is missing may come soon.
  const end = state.polls + 20;
  await until('twenty polls', () => state.polls >= end, 1.5);
  assert.equal(state.heard, '');
  find({ seqs: [2, 3], last: 3, oldest: 8 });
  await polls(3);
  assert.equal(state.heard, ' 2 3');
});

test('a server that a failover left behind is not believed, the new one is', async (t) => {
  const { state, lines, find, polls } = open(t, { timeline: 2 });
  await polls(1);
  find({ seqs: times(5).map((at) => at + 1), last: 5 });
  await polls(2);
  assert.equal(state.heard, ' 1 2 3 4 5');
  find({ seqs: [6], last: 6, timeline: 1 });
  await polls(3);
  assert.deepEqual([state.heard, lines], [' 1 2 3 4 5', []]);
  // It lacks 4 and 5, and gives these numbers again.
  find({ seqs: [4, 5], last: 5, timeline: 3, back: 3 });
  await polls(3);
  assert.deepEqual([state.heard, lines], [' 1 2 3 4 5 4 5', ['database has failed over']]);
});

testAtLength('a connection that listens is checked every 5 s', async (t) => {
  const { state } = open(t, { listens: true });
  await until('three LISTEN', () => state.listened === 3, 15);
});
