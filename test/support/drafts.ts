/** A blog with posts that are not published, and everybody who may ask for them (R44). */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { hashPassword } from '../../dist/auth/password.js';
import { createDirectory } from './uploads.ts';
import { logIn } from './login.ts';
import { startServer, type TestServer } from './server.ts';
import type { StorePlace } from './stores.ts';

export type Headers = Readonly<Record<string, string>>;

/** Who asks. For all but the author and the administrator, a draft does not exist. */
export type Person = 'anonymous' | 'other' | 'removed' | 'expired' | 'author' | 'admin';
export const strangers = ['anonymous', 'other', 'removed', 'expired'] as const;
export const insiders = ['author', 'admin'] as const;

export type Blog = Awaited<ReturnType<typeof openBlog>>;

/** Two nodes, unless the store is in memory. */
export async function openBlog(t: TestContext, place: StorePlace, REQUIRE_AUTH: string) {
  const folder = await createDirectory(t);
  const passwordHash = await hashPassword('password');
  const toFile = async (...usernames: string[]): Promise<string> => {
    const accounts = usernames.map((username) => {
      const roles = username === 'admin' ? ['USER', 'ADMIN'] : ['USER'];
      return { username, email: `${username}@example.org`, roles, passwordHash };
    });
    const file = join(folder, `${usernames.length}.json`);
    await writeFile(file, JSON.stringify(accounts));
    return file;
  };
  const JWT_SECRET = 's'.repeat(32);
  const USERS_FILE = await toFile('author', 'other', 'admin');
  const env = { JWT_SECRET, REQUIRE_AUTH, STORE_URL: await place.newUrl(t), DEMO_DATA: 'false' };
  const start = (more: Headers) => startServer(t, { env: { ...env, ...more }, probed: false });
  const one = await start({ USERS_FILE });
  const nodes = [one, env.STORE_URL === 'memory:' ? one : await start({ USERS_FILE })] as const;
  const issuing = {
    ...env,
    STORE_URL: 'memory:',
    USERS_FILE: await toFile('author', 'x', 'y', 'gone'),
  };
  const issuer = (now: () => Date) => startServer(t, { env: issuing, now, probed: false });
  const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
  const people: Readonly<Record<Person, Headers>> = {
    anonymous: {},
    other: bearer(await logIn(one, 'other')),
    removed: bearer(await logIn(await issuer(() => new Date()), 'gone')),
    expired: bearer(await logIn(await issuer(() => new Date(Date.now() - 3_600_000)), 'author')),
    author: bearer(await logIn(one, 'author')),
    admin: bearer(await logIn(one, 'admin')),
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
