/** Given accounts beside kept ones: which goes first, and what a lookup costs (R20, R21). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAccounts } from '../../dist/store/accounts.js';

const toAccount = (username: string, email: string) => {
  return { id: '', username, email, roles: [], passwordHash: '' };
};
const given = toAccount('both', 'given@example.org');

function createFixture() {
  const asked: string[] = [];
  const kept = new Map(['both', 'kept'].map((name) => [name, toAccount(name, 'kept@example.org')]));
  const accounts = createAccounts([given], {
    find: (username) => {
      asked.push(username);
      return kept.get(username);
    },
  });
  return { accounts, asked };
}

test('without kept accounts there are the given ones, at once', () => {
  const accounts = createAccounts([given]);
  for (const find of [accounts.find, accounts.findForLogin]) {
    assert.equal(find('both'), given);
    assert.equal(find('kept'), undefined);
    assert.equal(find('__proto__'), undefined);
  }
});

test('a token of a given account asks the store for nothing', () => {
  const { accounts, asked } = createFixture();
  assert.equal(accounts.find('both'), given);
  assert.deepEqual(asked, []);
});

test('a login asks the store once, whether the name is given, kept or nobody’s', async () => {
  const { accounts, asked } = createFixture();
  assert.equal(await accounts.findForLogin('both'), given);
  assert.equal((await accounts.findForLogin('kept'))?.email, 'kept@example.org');
  assert.equal(await accounts.findForLogin('nobody'), undefined);
  assert.deepEqual(asked, ['both', 'kept', 'nobody']);
});

test('a name that is longer than any is not asked for', async () => {
  const { accounts, asked } = createFixture();
  assert.equal(await accounts.find('x'.repeat(256)), undefined);
  assert.equal(await accounts.find('x'.repeat(257)), undefined);
  assert.equal(await accounts.findForLogin('x'.repeat(257)), undefined);
  assert.deepEqual(asked, ['x'.repeat(256)]);
});
