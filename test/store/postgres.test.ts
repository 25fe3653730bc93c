import { after, before, type TestContext } from 'node:test';
import type { DriverOptions } from '../../dist/store/driver.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { type PostgresServer, skipPostgres as skip, startPostgres } from '../support/postgres.js';
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
