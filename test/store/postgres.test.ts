import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import type { DriverOptions } from '../../dist/store/driver.js';
import { openAccounts, openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';
import { startServer } from '../support/server.js';
import { describeAccounts } from './accounts-suite.js';
import { describeDriver, driverOptions } from './driver-suite.js';
import { describeHistories } from './histories.js';

let server: PostgresServer;
before(async () => {
  if (skip === false) server = await startPostgres();
});
after(async () => {
  if (skip === false) await server.remove();
});

async function open(context: TestContext, url: string, options?: DriverOptions): Promise<Store> {
  const store = await openStore(url, options ?? driverOptions());
  context.after(() => store.close());
  return store;
}

const driver = {
  name: 'on PostgreSQL',
  skip,
  open: async (context: TestContext, options: DriverOptions) =>
    open(context, await server.createDatabase(), options),
};

describeDriver(driver);
describeHistories(driver);
describeAccounts({ name: driver.name, skip, newUrl: () => server.createDatabase() });

test(
  'a database of the first version is brought up to date, filled no second time',
  { skip },
  async (t) => {
    const url = await server.createDatabase();
    const first = await openStore(url, driverOptions());
    await first.posts.remove(driverOptions().initial.posts[0]?.id ?? '');
    await first.close();
    const kept =
      "('posts', 'comments', 'authors', 'todos', 'articles', 'counters', 'schema_state')";
    const later = await server.query(
      url,
      `SELECT tablename FROM pg_tables WHERE schemaname = 'inkwell' AND tablename NOT IN ${kept}`,
    );
    for (const { tablename } of later) {
      await server.query(url, `DROP TABLE inkwell.${String(tablename)}`);
    }
    await server.query(url, 'UPDATE inkwell.schema_state SET version = 1');
    const opened = await openAccounts(url, driverOptions());
    assert.deepEqual(await opened.accounts.list(), []);
    await opened.close();
    const second = await open(t, url);
    assert.equal((await second.posts.list()).length, 2);
  },
);

test('STORE_CONNECTIONS_MAX: fifty readers share so many connections', { skip }, async (t) => {
  const url = await server.createDatabase();
  const env = { STORE_URL: url, STORE_CONNECTIONS_MAX: '2' };
  const service = await startServer(t, { env });
  const answers = await Promise.all(Array.from({ length: 50 }, () => service.fetch('/posts')));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const statement = `select count(*)::int as connections from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  const [found] = await server.query(url, statement);
  // One more listens for comments of other nodes.
  assert.equal(found?.['connections'], 3);
});
