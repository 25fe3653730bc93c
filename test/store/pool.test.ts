/** What the pool promises whoever asks, by a server that does what a test says: no PostgreSQL. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { type Result, type Server, sql } from '../../dist/store/postgres/connection.js';
import { createOutageLog } from '../../dist/store/postgres/faults.js';
import { Pool } from '../../dist/store/postgres/pool.js';
import { times } from '../support/lists.ts';
import { until } from '../support/until.ts';

type Connect = Parameters<Server['connect']>[0];
type Run = Awaited<ReturnType<Server['connect']>>['run'];
type Done = Parameters<Run>[1];

/** A statement that a connection was given. */
interface Sent {
  readonly text: string;
  /** The connections are counted from 1. */
  readonly connection: number;
  readonly done: Done;
  /** The connection is lost. */
  lose(): void;
}

const read = sql`SELECT 1`;
const write = sql`INSERT INTO t VALUES (1)`;

function open(t: TestContext, connectionsMax = 4, refusal?: Error) {
  const sent: Sent[] = [];
  const closed: number[] = [];
  const state: { connections: number; refusal: Error | undefined } = { connections: 0, refusal };
  const connect = ({ onClosed }: Connect): ReturnType<Server['connect']> => {
    state.connections += 1;
    const connection = state.connections;
    if (state.refusal !== undefined) return Promise.reject(state.refusal);
    return Promise.resolve({
      run: ({ text }, done) => {
        const lose = (): void => {
          done(new Error('read ECONNRESET'));
          onClosed?.();
        };
        sent.push({ text, connection, done, lose });
      },
      runScript: () => Promise.resolve(),
      end: () => void closed.push(connection),
    });
  };
  const server: Server = { address: '192.0.2.1:5432', hasSessions: true, connect };
  const pool = new Pool(server, { log: () => undefined, connectionsMax, timeoutSeconds: 60 });
  t.after(() => {
    for (const { done } of sent) done(undefined, empty);
    return pool.close();
  });
  /** Resolves with the next statement that a connection is given, and counts it as seen. */
  let seen = 0;
  const next = async (): Promise<Sent> => {
    await until('a statement', () => sent.length > seen);
    seen += 1;
    return sent[seen - 1] as Sent; // it was waited for
  };
  return { pool, sent, closed, state, next };
}

const empty: Result = { columns: [], cells: [] };

/** How it ends, or that it does not end. */
function endOf(asked: Promise<unknown>, milliseconds = 10_000): Promise<unknown> {
  const end = asked.then(() => 'done', codeOf);
  return Promise.race([end, pause(milliseconds, 'waits', { ref: false })]);
}

/** An error as the server sends it. */
function fromServer(code: string): Error {
  return Object.assign(new Error('refused'), { severity: 'ERROR', code });
}

test('a read whose connection is lost runs once more, on another connection', async (t) => {
  const { pool, next } = open(t);
  const reading = pool.read(read);
  const first = await next();
  first.lose();
  const second = await next();
  assert.equal(second.text, first.text);
  assert.notEqual(second.connection, first.connection);
  second.done(undefined, empty);
  assert.deepEqual(await reading, []);
});

test('a read that loses two connections is refused', async (t) => {
  const { pool, next, sent } = open(t);
  const reading = endOf(pool.read(read));
  (await next()).lose();
  const second = await next();
  second.done(new Error('read ECONNRESET'));
  assert.equal(await reading, 'unavailable');
  assert.equal(sent.length, 2);
  // A connection that was lost is used no more, also before it is closed.
  const later = pool.read(read);
  const { connection, done } = await next();
  assert.notEqual(connection, second.connection);
  done(undefined, empty);
  await later;
});

test('a write whose connection is lost is refused, and never runs again', async (t) => {
  const { pool, next, sent } = open(t);
  const writing = endOf(pool.write(write));
  (await next()).lose();
  assert.equal(await writing, 'unavailable');
  // What comes later is sent, and nothing else.
  const reading = pool.read(read);
  const { text, done } = await next();
  done(undefined, empty);
  await reading;
  assert.deepEqual([text, sent.length], ['SELECT 1', 2]);
});

test('an error of the server is no reason to run a read again', async (t) => {
  const { pool, next, sent } = open(t);
  const reading = endOf(pool.read(read));
  (await next()).done(fromServer('57014'));
  assert.equal(await reading, 'overloaded');
  assert.equal(sent.length, 1);
});

for (const [what, code, replaced] of [
  ['a session that only reads', '25006', true],
  ['a lock that was waited for', '55P03', false],
] as const) {
  const verb = replaced ? 'replaces' : 'does not replace';
  test(`${what} ${verb} the connections, idle ones too`, async (t) => {
    const { pool, next, closed } = open(t);
    const reads = [pool.read(read), pool.read(read)];
    const both = [await next(), await next()];
    for (const { done } of both) done(undefined, empty);
    await Promise.all(reads);
    const writing = assert.rejects(pool.write(write));
    const { connection, done } = await next();
    done(fromServer(code));
    await writing;
    assert.deepEqual(
      closed.toSorted((a, b) => a - b),
      replaced ? [1, 2] : [],
    );
    const last = pool.write(write);
    const sent = await next();
    assert.equal(sent.connection === connection, !replaced);
    sent.done(undefined, empty);
    await last;
  });
}

test('beyond 2,000 reads that wait one more is refused; writes are counted apart', async (t) => {
  const { pool, next } = open(t, 1);
  const reads = times(2_000).map(() => pool.read(read).catch(() => undefined));
  assert.equal(await endOf(pool.read(read), 0), 'overloaded');
  const writes = times(2_000).map(() => pool.write(write).catch(() => undefined));
  assert.equal(await endOf(pool.write(write), 0), 'overloaded');
  const { done } = await next();
  done(undefined, empty);
  await reads[0];
  // One place is free.
  const last = pool.read(read).catch(() => undefined);
  assert.equal(await endOf(pool.read(read), 0), 'overloaded');
  void pool.close();
  await Promise.all([...reads, ...writes, last]);
});

test('three connections are kept for reads, however many writes wait', async (t) => {
  const { pool, sent } = open(t, 5);
  const writes = times(9).map(() => pool.write(write));
  const reads = times(9).map(() => pool.read(read));
  await until('five statements', () => sent.length >= 5);
  const running = sent.map(({ text }) => text.slice(0, 6)).toSorted();
  assert.deepEqual(running, ['INSERT', 'INSERT', 'SELECT', 'SELECT', 'SELECT']);
  for (let at = 0; at < 18; at += 1) {
    await until('all statements', () => sent.length > at);
    sent[at]?.done(undefined, empty);
  }
  await Promise.all([...writes, ...reads]);
});

test('a late statement is refused, also while its connection does not answer', async (t) => {
  const { pool, next } = open(t);
  // Whole, so that the sum of the steps below is exact.
  let now = Math.ceil(performance.now());
  t.mock.method(performance, 'now', () => now);
  const reading = pool.read(read);
  await next();
  now += 60_900;
  assert.equal(await endOf(reading, 250), 'waits', '60 s and one more are not over');
  now += 100;
  assert.equal(await endOf(reading), 'unavailable');
});

test('while nobody can connect, one attempt is made at a time, and what waits is refused', async (t) => {
  const { pool, state, next } = open(t, 8, new Error('connect ECONNREFUSED'));
  const refused = times(8).map(() => 'unavailable');
  const ask = () => Promise.all(times(8).map(() => endOf(pool.read(read))));
  assert.deepEqual(await ask(), refused);
  const { connections } = state;
  assert.deepEqual(await ask(), refused);
  assert.equal(state.connections, connections + 1);
  state.refusal = undefined;
  const reading = pool.read(read);
  (await next()).done(undefined, empty);
  await reading;
});

test('with up to four connections one write runs at a time', async (t) => {
  for (const connectionsMax of [1, 4]) {
    const { pool, sent, next } = open(t, connectionsMax);
    const writes = [pool.write(write), pool.write(write)];
    const { done } = await next();
    await pause(20);
    assert.equal(sent.length, 1);
    done(undefined, empty);
    (await next()).done(undefined, empty);
    await Promise.all(writes);
  }
});

test('connections are replaced once a second, however many statements find them lost', async (t) => {
  const { pool, next, closed } = open(t);
  let now = Math.ceil(performance.now());
  t.mock.method(performance, 'now', () => now);
  /** Two connections that are idle, and then find, a millisecond later, that they only read. */
  const findReadOnly = async (): Promise<readonly number[]> => {
    const before = closed.length;
    const reads = [pool.read(read), pool.read(read)];
    for (const { done } of [await next(), await next()]) done(undefined, empty);
    await Promise.all(reads);
    now += 1;
    const writing = assert.rejects(pool.write(write));
    (await next()).done(fromServer('25006'));
    await writing;
    return closed.slice(before);
  };
  assert.equal((await findReadOnly()).length, 2);
  now += 998;
  assert.equal((await findReadOnly()).length, 0);
  // A second after the first time.
  assert.equal((await findReadOnly()).length, 2);
});

test('attempts to connect are 50 ms apart, then more, up to a second', async (t) => {
  const { pool } = open(t, 4, new Error('connect ECONNREFUSED'));
  const pauses: number[] = [];
  const { setTimeout: later } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (call: () => void, milliseconds: number) => {
    pauses.push(milliseconds);
    return later(call, 0);
  });
  for (const _ of times(8)) assert.equal(await endOf(pool.read(read)), 'unavailable');
  // The pool looks for late statements every 100 ms.
  const others = pauses.filter((milliseconds) => milliseconds !== 100);
  assert.deepEqual(others, [50, 200, 400, 800, 1_000, 1_000, 1_000]);
  assert.ok(pauses.filter((milliseconds) => milliseconds === 100).length > 1);
});

test('a stop waits two seconds for statements under way', async (t) => {
  const { pool, next, closed } = open(t);
  let now = Math.ceil(performance.now());
  t.mock.method(performance, 'now', () => now);
  const reading = endOf(pool.read(read));
  await next();
  void pool.close();
  now += 1_999;
  assert.equal(await Promise.race([reading, pause(100, 'waits')]), 'waits');
  now += 1;
  assert.equal(await Promise.race([reading, pause(1_000, 'waits')]), 'unavailable');
  assert.deepEqual(closed, [1]);
});

test('an outage is over when nothing was refused for a second', (t) => {
  let now = 5_000;
  t.mock.method(performance, 'now', () => now);
  const lines: string[] = [];
  const outage = createOutageLog((_level, event) => void lines.push(event), '192.0.2.1');
  outage.noteAway(new Error('read ECONNRESET'));
  now += 999;
  outage.noteSuccess();
  assert.deepEqual(lines, ['database is away']);
  now += 1;
  outage.noteSuccess();
  assert.deepEqual(lines, ['database is away', 'database is back']);
});
