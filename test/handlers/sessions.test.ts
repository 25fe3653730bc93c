/** Tokens of accounts that change: their claims, and their end in every place at once (R42). */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { hashPassword } from '../../dist/auth/password.js';
import type { Account } from '../../dist/store/model.js';
import { openAccounts } from '../../dist/store/open.js';
import { readClaims } from '../support/tokens.ts';
import { driverOptions } from '../support/driver-options.ts';
import { logIn, refresh } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { type StorePlace, stores } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';
import { connectByHand, type HandClient } from '../support/ws-clients.ts';

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** Nodes of one service with these accounts, and how they change for all nodes. */
interface Site {
  readonly nodes: readonly TestServer[];
  /** Replaces the account `ann`, or removes it. Returns the nodes that count from now on. */
  change(account: Account | undefined): Promise<readonly TestServer[]>;
}

/** With a database: two nodes. In memory: a node that is started again with another USERS_FILE. */
async function openSite(t: TestContext, place: StorePlace, first: Account): Promise<Site> {
  const STORE_URL = await place.newUrl(t);
  const env = { STORE_URL, JWT_SECRET: 's'.repeat(32), REQUIRE_AUTH: 'members' };
  const start = (more: object = {}) => startServer(t, { env: { ...env, ...more }, probed: false });
  if (STORE_URL === 'memory:') {
    const file = join(await createDirectory(t), 'users.json');
    const restart = async (account: Account | undefined) => {
      await writeFile(file, JSON.stringify(account === undefined ? [] : [account]));
      return [await start({ USERS_FILE: file })];
    };
    return { nodes: await restart(first), change: restart };
  }
  const options = { ...driverOptions(), startSeconds: 5, mayCreate: true };
  const { accounts, close } = await openAccounts(STORE_URL, options);
  t.after(() => close());
  await accounts.add(first);
  const nodes = [await start(), await start()];
  return {
    nodes,
    change: async (account) => {
      if (account !== undefined && (await accounts.changePassword('ann', account.passwordHash))) {
        const now = await accounts.find('ann');
        if (now?.email === account.email) return nodes;
      }
      await accounts.remove('ann');
      if (account !== undefined) assert.equal(await accounts.add(account), true);
      return nodes;
    },
  };
}

const passwords = ['a jar of black ink', 'a jar of blue blots'] as const;

async function createAnn(password: string): Promise<Account> {
  return {
    id: '018f3173-7000-7000-8000-000000000001',
    username: 'ann',
    email: 'ann@example.org',
    roles: ['USER'],
    passwordHash: await hashPassword(password),
  };
}

const allPosts = '{ allPosts { id } }';
const commentAdded = 'subscription { commentAdded { id } }';

async function openSocket(
  { port }: TestServer,
  token: string,
  protocols: readonly string[],
): Promise<HandClient> {
  const client = await connectByHand(port, { protocols });
  const { type } = await client.ask({ type: 'connection_init', payload: bearer(token) });
  assert.equal(type, 'connection_ack');
  return client;
}

/** The answer to a query over a socket. */
async function askSocket(client: HandClient, protocols: readonly string[]): Promise<string> {
  const type = protocols[0] === 'graphql-transport-ws' ? 'subscribe' : 'start';
  client.send({ id: '1', type, payload: { query: allPosts } });
  const text = JSON.stringify(await client.next());
  if (!text.includes('error')) assert.equal((await client.next()).type, 'complete');
  return text;
}

const dialects = [['graphql-transport-ws'], ['graphql-ws'], []] as const;

/** A request with a token: its status, and the first that comes of its body. */
async function send(
  [server, token]: readonly [TestServer, string],
  path: string,
  { body, accept = '*/*' }: { readonly body?: unknown; readonly accept?: string } = {},
): Promise<string> {
  const isForm = body instanceof FormData;
  const type = { 'Content-Type': 'application/json' };
  const response = await server.fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...bearer(token), Accept: accept, ...(isForm ? {} : type) },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  const reader = response.body?.getReader();
  const { value = new Uint8Array() } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return `${response.status} ${Buffer.from(value).toString()}`;
}

function toForm(): FormData {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query: allPosts }));
  form.append('map', '{}');
  return form;
}

const query = { query: allPosts };
const accept = 'text/event-stream';

/** Every place where a token is checked: what comes back when one is sent. */
const ways: Readonly<Record<string, (server: TestServer, token: string) => Promise<string>>> = {
  profile: (server, token) => send([server, token], '/profile'),
  'a read': (server, token) => send([server, token], '/posts'),
  'a write': (server, token) => send([server, token], '/api/todos', { body: { title: 'a' } }),
  refresh: (server, token) => send([server, token], '/auth/refresh', { body: {} }),
  'GraphQL by GET': (server, token) =>
    send([server, token], `/graphql?query=${encodeURIComponent(allPosts)}`),
  GraphQL: (server, token) => send([server, token], '/graphql', { body: query }),
  // The response could come out of the cache.
  'GraphQL again': (server, token) => send([server, token], '/graphql', { body: query }),
  'a batch': (server, token) => send([server, token], '/graphql', { body: [query, query] }),
  'a form': (server, token) => send([server, token], '/graphql', { body: toForm() }),
  'an event stream': (server, token) =>
    send([server, token], '/graphql', { body: { query: commentAdded }, accept }),
  ...Object.fromEntries(
    dialects.map((protocols) => [
      `a socket (${protocols[0] ?? 'no protocol'})`,
      async (server: TestServer, token: string) => {
        const client = await openSocket(server, token, protocols);
        const text = await askSocket(client, protocols);
        await client.close();
        return text;
      },
    ]),
  ),
};

const refusal = /"UNAUTHENTICATED"|"invalid_token"/;
const success = /^20[01] |^\{"(?:id|type)":.*"allPosts":\[/;

async function assertAll(
  nodes: readonly TestServer[],
  token: string,
  isRefused: boolean,
): Promise<void> {
  for (const [at, node] of nodes.entries()) {
    for (const [name, ask] of Object.entries(ways)) {
      const text = await ask(node, token);
      assert.match(text, isRefused ? refusal : success, `${name} on node ${at}`);
      assert.doesNotMatch(text, isRefused ? /"allPosts":\[|"id":"0/ : refusal, name);
    }
  }
}

for (const place of stores) {
  describe(`tokens ${place.name}`, { skip: place.skip }, () => {
    it('have the roles and the address of the account as they are at a refresh', async (t) => {
      const ann = await createAnn(passwords[0]);
      const { nodes, change } = await openSite(t, place, ann);
      const token = await logIn(nodes[0] as TestServer, 'ann', passwords[0]);
      const changed = { ...ann, email: 'new@example.org', roles: ['USER', 'ADMIN'] };
      for (const [at, node] of (await change(changed)).entries()) {
        const next = readClaims(await refresh(node, token));
        assert.deepEqual(
          [next['email'], next['roles']],
          [changed.email, changed.roles],
          `node ${at}`,
        );
        assert.equal(next['auth_time'], readClaims(token)['auth_time'], `node ${at}`);
        assert.equal(next['credential'], readClaims(token)['credential'], `node ${at}`);
      }
    });

    it('end with a new password, or with their account, in every place at once', async (t) => {
      const [ann, next] = [await createAnn(passwords[0]), await createAnn(passwords[1])];
      const { nodes, change } = await openSite(t, place, ann);
      const [first] = nodes as [TestServer];
      const token = await logIn(first, 'ann', passwords[0]);
      await assertAll(nodes, token, false);
      const refreshed = await refresh(nodes.at(-1) as TestServer, token);
      const sockets = await Promise.all(
        dialects.map((protocols) => openSocket(first, token, protocols)),
      );
      const after = await change(next);
      await assertAll(after, token, true);
      await assertAll(after, refreshed, true);
      if (after[0] === first) {
        for (const [at, socket] of sockets.entries()) {
          assert.match(
            await askSocket(socket, dialects[at] ?? []),
            /UNAUTHENTICATED/,
            `round ${at}`,
          );
        }
      }
      const young = await logIn(after[0] as TestServer, 'ann', passwords[1]);
      await assertAll(after, young, false);
      // The first password again is another hash, and brings no token back.
      const again = await change(await createAnn(passwords[0]));
      await assertAll(again, young, true);
      await assertAll(again, token, true);
      const last = await logIn(again[0] as TestServer, 'ann', passwords[0]);
      await assertAll(await change(undefined), last, true);
    });
  });
}
