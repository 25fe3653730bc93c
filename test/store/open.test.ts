import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readConfig } from '../../dist/config.js';
import { openStore } from '../../dist/store/open.js';
import { driverOptions } from './driver-suite.js';
import { allOf } from '../support/lists.js';

it('opens a store in memory by default', async () => {
  for (const url of ['', 'memory:']) {
    const store = await openStore(url, driverOptions());
    assert.equal((await allOf(store.posts.all)).length, 3);
  }
});

it('refuses a path that is not encoded well', async () => {
  await assert.rejects(openStore('sqlite:///%zz', driverOptions()), { message: /^STORE_URL: / });
});

it('takes only URLs that a driver knows', () => {
  const good = ['', 'memory:', 'sqlite:///a.db', 'postgres://h/d', 'postgresql://u:p@h:1/d'];
  for (const url of good) assert.equal(readConfig({ STORE_URL: url }).storeUrl, url);
  for (const url of ['sqlite://a.db', 'sqlite:///', 'mysql://h/d', 'postgres:', 'x']) {
    assert.throws(() => readConfig({ STORE_URL: url }), { message: /^STORE_URL must be memory:/ });
  }
});
