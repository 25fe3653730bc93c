/** The nodes of a durable store count failed logins together (R21). */

import assert from 'node:assert/strict';
import { before, describe, it, type TestContext } from 'node:test';
import { createLoginLimiter, type LoginLimiter } from '../../dist/auth/login-limiter.js';
import { AppError } from '../../dist/errors.js';
import { openStore } from '../../dist/store/open.js';
import { rowsMax } from '../../dist/store/sql/login-failures.js';
import type { LoginFailures } from '../../dist/store/store.js';
import { driverOptions } from '../store/driver-suite.js';
import { withCode } from '../support/errors.js';
import { askLogin } from '../support/login.js';
import { type PostgresServer, skipPostgres } from '../support/postgres.js';
import { sharePostgres } from '../support/shared-postgres.js';
import { startServer, type TestServer } from '../support/server.js';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';

type Rows = readonly Readonly<Record<string, unknown>>[];

interface Database {
  readonly url: string;
  /** One statement on a connection of its own. */
  readonly query: (text: string) => Promise<Rows>;
  readonly table: string;
  /** SQL for the database's clock, in milliseconds, and for the numbers from 1 to `count`. */
  readonly now: string;
  readonly numbers: (count: number) => string;
}

interface Driver {
  readonly name: string;
  readonly skip: string | false;
  readonly create: (context: TestContext) => Promise<Database>;
}

let postgres: PostgresServer;
before(async () => {
  if (skipPostgres === false) postgres = await sharePostgres();
});

const drivers: readonly Driver[] = [
  {
    name: 'a SQLite file',
    skip: skipSqlite,
    async create(context) {
      const path = await newSqliteFile(context);
      return {
        url: toSqliteUrl(path),
        query: (text) => Promise.resolve(inSqlite(path, (file) => file.prepare(text).all())),
        table: 'login_failures',
        now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        numbers: (count) =>
          `(WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < ${count})
            SELECT n FROM up) AS numbers`,
      };
    },
  },
  {
    name: 'PostgreSQL',
    skip: skipPostgres,
    async create() {
      const url = await postgres.clearedDatabase();
      return {
        url,
        query: (text) => postgres.query(url, text),
        table: 'inkwell.login_failures',
        now: '(extract(epoch FROM now()) * 1000)::bigint',
        numbers: (count) => `generate_series(1, ${count}) AS numbers (n)`,
      };
    },
  },
];

/** The counts of as many nodes. */
async function openNodes(context: TestContext, url: string, count = 2): Promise<LoginFailures[]> {
  const nodes: LoginFailures[] = [];
  for (let node = 0; node < count; node += 1) {
    const store = await openStore(url, driverOptions());
    context.after(() => store.close());
    assert.ok(store.loginFailures);
    nodes.push(store.loginFailures);
  }
  return nodes;
}

/** Logs in as a client whom the server's proxy names; the status. */
const loginFrom =
  (client: string, username: string, password = 'password') =>
  async (server: TestServer): Promise<number> => {
    const response = await server.fetch('/auth/login', {
      method: 'POST',
      body: JSON.stringify({ username, password }),
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': client },
    });
    return response.status;
  };

const minute = 60_000;

for (const { name, skip, create } of drivers) {
  describe(`nodes on ${name}`, { skip }, () => {
    it('lock an account for an address after the failures at all of them', async (t) => {
      const { url, query, table } = await create(t);
      // The clocks of the nodes do not count: one stands still, one is of another century.
      const options = { env: { STORE_URL: url, LOGIN_FAILURES_MAX: '3' }, monotonicNow: () => 0 };
      const one = await startServer(t, options);
      const other = await startServer(t, { ...options, now: () => new Date(0) });
      for (const node of [one, other, one]) {
        assert.equal((await askLogin(node, 'user', 'guess')).status, 401);
      }
      for (const node of [one, other]) {
        const refused = await askLogin(node, 'user', 'password');
        assert.equal(refused.status, 429);
        const seconds = Number(refused.headers.get('retry-after'));
        assert.ok(seconds > 0 && seconds <= 60, String(seconds));
        assert.equal((await askLogin(node, 'admin', 'password')).status, 200);
      }
      await query(`UPDATE ${table} SET ends = ends - ${minute}`);
      assert.equal((await askLogin(other, 'user', 'password')).status, 200);
    });

    it('let the owner in from another address, at any of them', async (t) => {
      const { url } = await create(t);
      const trusted = { TRUSTED_PROXIES: '127.0.0.0/8, ::1' };
      const env = { ...trusted, STORE_URL: url, LOGIN_FAILURES_MAX: '1' };
      const nodes = [await startServer(t, { env }), await startServer(t, { env })];
      // Beyond the wide bound of the account.
      for (let index = 0; index < 12; index += 1) {
        const [node] = index % 2 === 0 ? nodes : nodes.toReversed();
        assert.ok(node);
        assert.equal(await loginFrom(`192.0.2.${index}`, 'user', 'x')(node), 401);
      }
      for (const node of nodes) {
        assert.equal(await loginFrom('192.0.2.1', 'user')(node), 429);
        assert.equal(await loginFrom('203.0.113.1', 'user')(node), 200);
        assert.equal(await loginFrom('192.0.2.1', 'admin')(node), 200);
      }
    });

    it('forget the failures of a pair after its success at one of them', async (t) => {
      const { url, query, table } = await create(t);
      const env = { STORE_URL: url, LOGIN_FAILURES_MAX: '2' };
      const [one, other] = [await startServer(t, { env }), await startServer(t, { env })];
      for (let round = 0; round < 3; round += 1) {
        assert.equal((await askLogin(one, 'user', 'guess')).status, 401);
        assert.equal((await askLogin(other, 'user', 'password')).status, 200);
      }
      const rows = await query(`SELECT failures FROM ${table}`);
      assert.deepEqual(
        rows.map(({ failures }) => Number(failures)),
        [3, 3],
      );
    });

    it('count every failure of the same moment once', async (t) => {
      const { url } = await create(t);
      const nodes = await openNodes(t, url, 3);
      const keys = ['a', 'b', 'c'];
      const adding = Array.from({ length: 90 }, async (_, at) =>
        nodes[at % 3]?.add(at % 2 === 0 ? keys : keys.toReversed(), minute),
      );
      await Promise.all(adding);
      const found = await nodes[0]?.find([...keys, 'd']);
      assert.deepEqual([...(found?.keys() ?? [])].toSorted(), keys);
      for (const { count } of found?.values() ?? []) assert.equal(count, 90);
    });

    it('begin a window anew when it is over, and when the clock was set back', async (t) => {
      const { url, query, table } = await create(t);
      const [one, other] = await openNodes(t, url);
      for (const passed of [minute, -60 * minute]) {
        await one?.add(['key'], minute);
        await one?.add(['key'], minute);
        assert.equal((await other?.find(['key']))?.get('key')?.count, 2);
        await query(`UPDATE ${table} SET ends = ends - (${passed})`);
        assert.equal((await other?.find(['key']))?.size, 0);
        await other?.add(['key'], minute);
        assert.equal((await one?.find(['key']))?.get('key')?.count, 1);
        await one?.forget('key');
      }
    });

    it('keep a bounded number of counts, without those that are over', async (t) => {
      const { url, query, table, now, numbers } = await create(t);
      const [one, other] = await openNodes(t, url);
      const count = async () =>
        Number((await query(`SELECT count(*) AS n FROM ${table}`))[0]?.['n']);
      await query(
        `INSERT INTO ${table} SELECT 'old ' || n, 1, ${now} - n FROM ${numbers(1_000)} WHERE true`,
      );
      await query(
        `INSERT INTO ${table} SELECT 'new ' || n, 1, ${now} + ${minute} / 2 + n / 10
         FROM ${numbers(rowsMax)} WHERE true`,
      );
      // Where removal comes first it leaves what is added beside it.
      await other?.add(['one more'], minute);
      assert.ok((await count()) <= rowsMax + 1);
      await one?.add(['one more'], minute);
      assert.ok((await count()) <= rowsMax);
      const found = await other?.find(['new 1', `new ${rowsMax}`, 'one more']);
      assert.deepEqual([...(found?.keys() ?? [])].toSorted(), [`new ${rowsMax}`, 'one more']);
    });

    it('take turns in the order in which they ask', async (t) => {
      const { url } = await create(t);
      const [one, other] = await openNodes(t, url);
      const interval = 30_000;
      const places = [];
      for (const node of [one, other, other, one]) {
        const milliseconds = (await node?.takeTurn('key', interval)) ?? NaN;
        places.push(Math.max(0, Math.ceil(milliseconds / interval)));
      }
      assert.deepEqual(places, [0, 1, 2, 3]);
      assert.equal(await other?.takeTurn('other key', interval), 0);
    });
  });
}

/** A store that refuses what is named; the rest of it is empty. */
function createFailures(
  refuses: readonly (keyof LoginFailures)[] = [],
  instead: Partial<LoginFailures> = {},
) {
  const asked: (keyof LoginFailures)[] = [];
  const answer =
    <T>(name: keyof LoginFailures, value: T) =>
    (): Promise<T> => {
      asked.push(name);
      if (!refuses.includes(name)) return Promise.resolve(value);
      return Promise.reject(new AppError('unavailable', 'The database does not answer.'));
    };
  const shared: LoginFailures = {
    find: answer('find', new Map()),
    add: answer('add', undefined),
    forget: answer('forget', undefined),
    takeTurn: answer('takeTurn', 0),
    ...instead,
  };
  const limiter = createLoginLimiter({ failuresMax: 2, now: () => 0, shared });
  return { asked, limiter };
}

const attempt = { username: 'ann', address: '192.0.2.1' };

it('a login without failures is one read', async () => {
  const { asked, limiter } = createFailures();
  assert.equal(await limiter.enter(attempt), 0);
  assert.deepEqual(asked, ['find']);
});

it('a login is refused while the store cannot be read', async () => {
  const { limiter } = createFailures(['find']);
  await assert.rejects(limiter.enter(attempt), withCode('unavailable'));
});

it('a login that is queued has its turn among those of all nodes', async () => {
  const turns: ((milliseconds: number) => void)[] = [];
  const { limiter } = createFailures([], {
    find: (keys) => {
      const wide = keys.filter((key) => !key.includes(' '));
      return new Map(wide.map((key) => [key, { count: 20, millisecondsLeft: minute }]));
    },
    takeTurn: () => new Promise((resolve) => turns.push(resolve)),
  });
  let entered = false;
  const entering = limiter.enter(attempt).then(() => (entered = true));
  // One among those of the address, then one among those of the account.
  for (let turn = 0; turn < 2; turn += 1) {
    while (turns.length <= turn) await new Promise(setImmediate);
    assert.equal(entered, false);
    turns[turn]?.(0);
  }
  await entering;
});

it('what the store does not take is counted by the node', async () => {
  const { limiter } = createFailures(['add', 'forget', 'takeTurn']);
  const failOften = async (one: LoginLimiter, count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) {
      await one.fail({ username: 'ann', address: `192.0.2.${index}` });
    }
  };
  await limiter.fail(attempt);
  assert.equal(await limiter.enter(attempt), 1);
  await limiter.succeed(attempt);
  assert.equal(await limiter.enter(attempt), 0);
  await limiter.fail(attempt);
  await limiter.fail(attempt);
  await assert.rejects(limiter.enter(attempt), withCode('too_many_requests'));
  await failOften(limiter, 20);
  assert.equal(await limiter.enter({ username: 'ann', address: '203.0.113.1' }), 0);
});
