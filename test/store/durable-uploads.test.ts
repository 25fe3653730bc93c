/** The three stores of uploads, and what those with an index in a database do beyond the contract. */

import assert from 'node:assert/strict';
import { before, describe, it, type TestContext } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { withCode } from '../support/errors.js';
import { rounds } from '../support/long.js';
import { type PostgresServer, skipPostgres } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';
import { createDirectory, openUploads, readAll, store } from '../support/uploads.js';
import { until } from '../support/until.js';
import { driverOptions } from './driver-suite.js';
import { ageAll, describeDurable, openDurable, type OpenRecords } from './durable-suite.js';
import { describeUploads, listDurable } from './uploads-suite.js';

describeUploads({
  name: 'in a folder of the run',
  skip: false,
  async open(context, { filesMax, bytesMax }) {
    const bounds = { filesMax, bytesMax };
    return [(await openUploads(context, bounds)).uploads];
  },
});

describeUploads({
  name: 'with its index in SQLite',
  skip: skipSqlite,
  async open(context, { filesMax, bytesMax }) {
    const bounds = { filesMax, bytesMax };
    const records = await openSqlite(context);
    const directory = await createDirectory(context);
    return [(await openDurable(records, context, { directory, ...bounds })).uploads];
  },
});

async function openSqlite(context: TestContext): Promise<Store> {
  const records = await openStore(toSqliteUrl(await newSqliteFile(context)), driverOptions());
  context.after(() => records.close());
  return records;
}

describe('on PostgreSQL', { skip: skipPostgres }, () => {
  let server: PostgresServer;
  let url: string;
  before(async () => {
    server = await sharePostgres();
  });

  const open = async (context: TestContext): Promise<Store> => {
    const records = await openStore(url, driverOptions());
    context.after(() => records.close());
    return records;
  };
  const openNew: OpenRecords = async (context) => {
    url = await server.clearedDatabase();
    return open(context);
  };

  describeUploads({
    name: 'with its index in PostgreSQL',
    skip: false,
    async open(context, { nodes, ...bounds }) {
      const directory = await createDirectory(context);
      url = await server.clearedDatabase();
      const opened = await Promise.all(
        Array.from({ length: nodes }, async () => {
          const records = await open(context);
          return openDurable(records, context, { directory, ...bounds });
        }),
      );
      return opened.map(({ uploads }) => uploads);
    },
  });

  describeDurable('in PostgreSQL', openNew);

  it('counts what other nodes are just committing', async (t) => {
    const directory = await createDirectory(t);
    const [one, other] = [await openNew(t), await open(t)];
    const more = { directory, filesMax: 2 };
    const nodes = [await openDurable(one, t, more), await openDurable(other, t, more)];
    // Every commit gets as far as it can before any of them may change the index.
    const locked = server.query(
      url,
      `DO $$ BEGIN
        LOCK TABLE inkwell.files IN SHARE MODE;
        WHILE (SELECT count(*) FROM pg_locks WHERE NOT granted) < 6 LOOP
          PERFORM pg_sleep(0.01);
        END LOOP;
      END $$`,
    );
    const asked = `SELECT 1 FROM pg_locks WHERE granted AND mode = 'ShareLock'
      AND relation = 'inkwell.files'::regclass`;
    await until(async () => (await server.query(url, asked)).length > 0);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 6 }, async (_, at) => {
        await store(nodes[at % 2]?.uploads ?? assert.fail(), { [`file ${at}`]: '' });
      }),
    );
    await locked;
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 2);
    for (const { uploads } of nodes) assert.equal((await readAll(uploads)).length, 2);
  });

  it('does not lose or keep half of what is committed while connections are cut', async (t) => {
    const records = await openNew(t);
    const directory = await createDirectory(t);
    const { uploads } = await openDurable(records, t, { directory });
    const expected = new Map<string, string>();
    let refused = 0;
    const turns = rounds('CUTS', { short: 12, long: 40 });
    for (let turn = 0; turn < turns; turn += 1) {
      const cutting = turn % 2 === 0 ? server.cutConnections() : undefined;
      const [name, text] = [`file ${turn}`, `text ${turn}`];
      const error = await store(uploads, { [name]: text }).catch((reason: unknown) => reason);
      if (error === undefined) expected.set(name, text);
      else {
        refused += 1;
        assert.equal((error as { code?: unknown }).code, 'unavailable');
      }
      await cutting;
    }
    t.diagnostic(`${refused} of ${turns} refused`);
    await ageAll(directory);
    await uploads.sweep();
    const found = new Map(await readAll(uploads));
    for (const [name, text] of expected) assert.equal(found.get(name), text);
    assert.equal((await listDurable(directory)).length, found.size);
  });

  it('refuses while the database is away, removes what it wrote, and goes on', async (t) => {
    const records = await openNew(t);
    const directory = await createDirectory(t);
    const { uploads } = await openDurable(records, t, { directory });
    await store(uploads, { a: '1' });
    await server.stop('SIGINT');
    try {
      await assert.rejects(store(uploads, { b: '2' }), withCode('unavailable'));
      await assert.rejects(async () => uploads.open(), withCode('unavailable'));
    } finally {
      await server.start();
    }
    await store(uploads, { c: '3' });
    await ageAll(directory);
    await uploads.sweep();
    assert.deepEqual(await readAll(uploads), [
      ['a', '1'],
      ['c', '3'],
    ]);
    assert.equal((await listDurable(directory)).length, 2);
  });
});

describe('on SQLite', { skip: skipSqlite }, () => {
  describeDurable('in SQLite', openSqlite);

  it('stops although its index does not answer', async (t) => {
    const directory = await createDirectory(t);
    const never = (): Promise<never> => new Promise(() => undefined);
    let isAway = false;
    const { uploads } = await openDurable(await openSqlite(t), t, {
      directory,
      wrap: (index) => ({ ...index, list: (name) => (isAway ? never() : index.list(name)) }),
    });
    isAway = true;
    void uploads.sweep();
    await uploads.close();
    await assert.rejects(store(uploads, { a: '1' }), withCode('draining'));
  });
});
