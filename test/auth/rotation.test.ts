/** A change of the signing key, as docs/production.md tells it: no token is refused on the way (R20, R22). */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { askProfile, logIn, refresh } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';

const [old, young] = ['the old secret of thirty-two bytes', 'the new secret of thirty-two bytes'];

const statusOf = async (node: TestServer, token: string): Promise<number> =>
  (await askProfile(node, `Bearer ${token}`)).status;

/** What the header of a token calls its key. */
const toKeyId = (token: string): unknown =>
  (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: unknown })
    .kid;

test('the second secret never signs', async (t) => {
  const first = await startServer(t, { env: { JWT_SECRET: old, JWT_SECRET_PREVIOUS: young } });
  const plain = await startServer(t, { env: { JWT_SECRET: old } });
  assert.equal(toKeyId(await logIn(first)), toKeyId(await logIn(plain)));
});

describe('nodes that are given a new secret one after the other', () => {
  const steps: readonly Readonly<Record<string, string>>[] = [
    { JWT_SECRET: old },
    { JWT_SECRET: old, JWT_SECRET_PREVIOUS: young },
    { JWT_SECRET: young, JWT_SECRET_PREVIOUS: old },
    { JWT_SECRET: young },
  ];
  for (const [at, next] of steps.slice(1).entries()) {
    test(`take each other's tokens in the middle of step ${at + 1}`, async (t) => {
      const settings = [steps[at] ?? {}, next];
      const nodes = await Promise.all(settings.map((env) => startServer(t, { env })));
      const own = await Promise.all(nodes.map((node) => logIn(node)));
      for (const token of own) {
        for (const [from, node] of nodes.entries()) {
          assert.equal(await statusOf(node, token), 200, `node ${from}`);
          // Refreshed by one, it is signed by the key of that one, and good for all.
          const refreshed = await refresh(node, token);
          assert.equal(toKeyId(refreshed), toKeyId(own[from] ?? ''), `node ${from}`);
          for (const [to, other] of nodes.entries())
            assert.equal(await statusOf(other, refreshed), 200, `node ${from} to ${to}`);
        }
      }
    });
  }

  test('refuse some where the first step is left out', async (t) => {
    const behind = await startServer(t, { env: steps[0] ?? {} });
    const ahead = await startServer(t, { env: steps[2] ?? {} });
    assert.equal(await statusOf(ahead, await logIn(behind)), 200);
    assert.equal(await statusOf(behind, await logIn(ahead)), 401);
  });
});
