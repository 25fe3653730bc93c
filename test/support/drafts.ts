/** A blog with posts that are not published, and everybody who may ask for them (R44). */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import { createDirectory } from './uploads.ts';
import { startServer, type TestServer } from './server.ts';
import type { StorePlace } from './stores.ts';

export type Headers = Readonly<Record<string, string>>;

/** Who asks. For all but the author and the administrator, a draft does not exist. */
export type Person = 'anonymous' | 'other' | 'removed' | 'expired' | 'author' | 'admin';
export const strangers = ['anonymous', 'other', 'removed', 'expired'] as const;
export const insiders = ['author', 'admin'] as const;

export type Blog = Awaited<ReturnType<typeof openBlog>>;

const JWT_SECRET = 's'.repeat(32);
/** Of a password that nobody knows: tokens are signed here, since a login takes 50 ms. */
const passwordHash =
  'scrypt$16384$8$1$mGIJ5RuHfGs6khJHn9OnYw$nITIG69x1SVuL55H3a-t7A5KYu5MLnecTMnR0Evvx7A';

function toAccount(username: string) {
  const roles = username === 'admin' ? ['USER', 'ADMIN'] : ['USER'];
  return { username, email: `${username}@example.org`, roles, passwordHash };
}

/** The header with a token that was signed so many seconds ago. */
function bearer(username: string, secondsAgo = 0): Headers {
  const now = (): Date => new Date(Date.now() - secondsAgo * 1_000);
  const secrets = [Buffer.from(JWT_SECRET)] as const;
  const tokens = createTokens({ secrets, ttlSeconds: 600, sessionSecondsMax: 600, now });
  return { Authorization: `Bearer ${tokens.sign(toAccount(username))}` };
}

/** Two nodes, unless the store is in memory. */
export async function openBlog(t: TestContext, place: StorePlace, REQUIRE_AUTH: string) {
  const USERS_FILE = join(await createDirectory(t), 'users.json');
  await writeFile(USERS_FILE, JSON.stringify(['author', 'other', 'admin'].map(toAccount)));
  const env = { JWT_SECRET, REQUIRE_AUTH, STORE_URL: await place.newUrl(t), DEMO_DATA: 'false' };
  const start = (more: Headers) => startServer(t, { env: { ...env, ...more }, probed: false });
  const one = await start({ USERS_FILE });
  const nodes = [one, env.STORE_URL === 'memory:' ? one : await start({ USERS_FILE })] as const;
  const people: Readonly<Record<Person, Headers>> = {
    anonymous: {},
    other: bearer('other'),
    removed: bearer('gone'),
    expired: bearer('author', 3_600),
    author: bearer('author'),
    admin: bearer('admin'),
  };
  const write = writing(one, people);
  // A SQLite file is for one server: another one reads, and does not hear of comments.
  const hearing = env.STORE_URL.startsWith('postgres') ? nodes : [one];
  return { one, nodes, hearing, people, ...write };
}

/** What somebody writes over REST; by default the author. */
function writing(node: TestServer, people: Readonly<Record<Person, Headers>>) {
  const send = (
    method: string,
    path: string,
    { body, as = 'author', headers = {} }: { body?: object; as?: Person; headers?: Headers } = {},
  ) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const sent = body && { body: JSON.stringify(body) };
    const all = { ...(body && { 'Content-Type': type }), ...people[as], ...headers };
    return node.fetch(path, { method, headers: all, ...sent });
  };
  const idOf = async (response: Promise<Response>): Promise<string> =>
    (await response).headers.get('location')?.split('/').at(-1) ?? '';
  const setStatus = async (id: string, status: string): Promise<void> =>
    void (await send('PATCH', `/posts/${id}`, { body: { status } }));
  return {
    send,
    setStatus,
    comment: (id: string, content: string, as?: Person): Promise<string> =>
      idOf(send('POST', `/posts/${id}/comments`, { body: { content }, ...(as && { as }) })),
    async post(status: string, as: Person = 'author'): Promise<string> {
      const body = { title: 'a', content: 'b' };
      const id = await idOf(send('POST', '/posts', { body, as }));
      if (status !== 'DRAFT') await setStatus(id, status);
      return id;
    },
    remove: (id: string) => send('DELETE', `/posts/${id}`),
  };
}

/** What differs between two equal responses at different times. */
const unequal = new Set(['date', 'x-request-id']);

/** All of a response that a client sees, with the names of ids in their places. */
export async function seen(
  response: Response,
  names: ReadonlyMap<string, string>,
): Promise<string> {
  const headers = [...response.headers].filter(([name]) => !unequal.has(name));
  let text = JSON.stringify([response.status, headers, await response.text()]);
  for (const [id, name] of names) text = text.replaceAll(id, name);
  return text;
}
