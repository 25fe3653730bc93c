/** A blog with posts that are not published, and everybody who may ask for them (R44). */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import type { Ask } from './draft-asks.ts';
import { isLong } from './long.ts';
import { read, transports } from './resuming.ts';
import { type ServerOptions, startServer, type TestServer } from './server.ts';
import type { StorePlace } from './stores.ts';
import { createDirectory } from './uploads.ts';
import { connectReady } from './ws-clients.ts';

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

interface BlogOptions extends Pick<ServerOptions, 'monotonicNow'> {
  /** Settings beside those of every blog. */
  readonly env: Headers;
}

/** Two nodes, unless the store is in memory. `options`: a value of REQUIRE_AUTH, or more. */
export async function openBlog(t: TestContext, place: StorePlace, options: string | BlogOptions) {
  const { env: settings, ...others } =
    typeof options === 'string' ? { env: { REQUIRE_AUTH: options } } : options;
  const USERS_FILE = join(await createDirectory(t), 'users.json');
  await writeFile(USERS_FILE, JSON.stringify(['author', 'other', 'admin'].map(toAccount)));
  const fixed = { JWT_SECRET, STORE_URL: await place.newUrl(t), DEMO_DATA: 'false' };
  const env = { ...fixed, ...settings };
  const start = (more: Headers) =>
    startServer(t, { ...others, env: { ...env, ...more }, probed: false });
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
  const setStatus = async (id: string, status: string, as?: Person): Promise<void> =>
    void (await send('PATCH', `/posts/${id}`, { body: { status }, ...(as && { as }) }));
  return {
    send,
    setStatus,
    comment: (id: string, content: string, as?: Person): Promise<string> =>
      idOf(send('POST', `/posts/${id}/comments`, { body: { content }, ...(as && { as }) })),
    async post(status: string, as: Person = 'author'): Promise<string> {
      const body = { title: 'a', content: 'b' };
      const id = await idOf(send('POST', '/posts', { body, as }));
      if (status !== 'DRAFT') await setStatus(id, status, as);
      return id;
    },
    remove: (id: string) => send('DELETE', `/posts/${id}`),
  };
}

/** What differs between two equal responses at different times. */
const unequal = new Set(['date', 'x-request-id']);

/** A blog for a suite, filled before its first test; ended after its last. */
export function useBlog<T>(
  open: (suite: TestContext) => Promise<Blog>,
  fill: (blog: Blog) => Promise<T>,
): { readonly blog: Blog; readonly filled: T } {
  const opened = { blog: undefined as unknown as Blog, filled: undefined as unknown as T };
  const endings: (() => Promise<void>)[] = [];
  before(async () => {
    const suite = { after: (end: () => Promise<void>) => void endings.unshift(end) };
    opened.blog = await open(suite as TestContext); // nothing else is used
    opened.filled = await fill(opened.blog);
  });
  after(async () => {
    for (const end of endings) await end();
  });
  return opened;
}

/** Ids, and the words that stand for them in what two responses have in common. */
export type Names = Readonly<Record<string, string>>;

/** The author asks the first node, others the second. */
export async function sendAs(
  { nodes, people }: Blog,
  { method, path, body, headers }: Ask,
  ...[person, names = {}]: readonly [Person, Names?]
): Promise<string> {
  const node = nodes[person === 'author' ? 0 : 1];
  const all = { ...headers, ...people[person] };
  const sent = body instanceof FormData ? body : JSON.stringify(body);
  const init = { method, headers: all, ...(body !== undefined && { body: sent }) };
  return toSeen(await node.fetch(path, init), names);
}

/** Who is asked, each in turn, one of so many questions. */
interface Asked<P extends Person> {
  readonly people: readonly P[];
  readonly every: number;
}
const isLeftOut = (at: number, every: number): boolean => (at + Math.floor(at / 6)) % every > 0;

/** All that they are told. */
export async function answersOf(
  blog: Blog,
  asks: readonly Ask[],
  { people, every }: Asked<Person>,
): Promise<readonly string[]> {
  const told: string[] = [];
  for (const [at, ask] of asks.entries()) {
    if (isLeftOut(at, every)) continue;
    for (const person of inTurn(people, at)) told.push(await sendAs(blog, ask, person));
  }
  return told;
}

/** What is hidden from people, and what was removed: requests with their ids. */
export interface Pair<T> {
  readonly hidden: readonly T[];
  readonly removed: readonly T[];
  readonly names: Readonly<Record<'hidden' | 'removed', Names>>;
}

/** They are told the same of both, also when the author has asked before. */
export async function assertAbsent(
  blog: Blog,
  { hidden, removed, names }: Pair<Ask>,
  { people, every }: Asked<Person>,
): Promise<void> {
  for (const [at, ask] of hidden.entries()) {
    if (isLeftOut(at, every)) continue;
    if (/GET|HEAD/.test(ask.method)) await sendAs(blog, ask, 'author');
    const compare = async (person: Person): Promise<void> => {
      const expected = await sendAs(blog, removed[at] as Ask, person, names.removed);
      const title = `${person}: ${ask.method} ${ask.path} ${JSON.stringify([ask.body, ask.headers])}`;
      assert.equal(await sendAs(blog, ask, person, names.hidden), expected, title);
    };
    await Promise.all(inTurn(people, at).map(compare));
  }
}

/** The same of queries over a socket. */
export async function assertAbsentOverSocket(
  blog: Blog,
  { hidden, removed, names }: Pair<string>,
  { people, every, protocol }: Asked<Person> & { readonly protocol: string },
): Promise<void> {
  for (const person of people) {
    const { ask, close } = await openSocket(blog, person, protocol);
    for (const [at, query] of hidden.entries()) {
      if (isLeftOut(at, every) || !inTurn(people, at).includes(person)) continue;
      const expected = await ask(`a${at}`, removed[at] ?? '', names.removed);
      assert.equal(await ask(`h${at}`, query, names.hidden), expected, `${person}: ${query}`);
    }
    await close();
  }
}

/** All of a response that a client sees, with the names of ids in their places. */
export async function toSeen(response: Response, names: Names = {}): Promise<string> {
  const all = [...response.headers].filter(([name]) => !unequal.has(name));
  return withNames(JSON.stringify([response.status, all, await response.text()]), names);
}

function withNames(text: string, names: Names): string {
  return Object.entries(names).reduce(
    (named, [id, name]) => named.replaceAll(id, name).replaceAll(id.toUpperCase(), name),
    text,
  );
}

/** A socket of somebody: gives all that comes of an operation. */
async function openSocket(blog: Blog, person: Person, protocol: string) {
  const headers = blog.people[person];
  const client = await connectReady(blog.nodes[1].port, { protocols: [protocol], headers });
  const type = protocol === 'graphql-ws' ? 'start' : 'subscribe';
  const ask = async (id: string, query: string, names: Names): Promise<string> => {
    let text = '';
    for (let message = await client.ask({ id, type, payload: { query } }); ;) {
      text += JSON.stringify({ ...message, id: '' });
      if (message.type === 'complete' || message.type === 'error') break;
      message = await client.next();
    }
    return withNames(text, names);
  };
  return { ask, close: () => client.close() };
}

/** At length each of them asks everything; else each question is asked by one of them in turn. */
export function inTurn<P extends Person>(people: readonly P[], at: number): readonly P[] {
  return isLong ? people : people.filter((_, index) => index === at % people.length);
}

interface Followed {
  readonly title: string;
  readonly person: Person;
  readonly next: () => Promise<string>;
}

/** In the modes `writes` and `owners`, where all of them may subscribe. */
const subscribers = ['anonymous', 'other', 'author', 'admin'] as const;

/** Subscriptions of everybody over each transport, on each node that hears of all comments. */
export async function followAll(
  t: TestContext,
  blog: Blog,
  args: string,
): Promise<readonly Followed[]> {
  const all: Followed[] = [];
  for (const { port } of blog.hearing) {
    for (const [transport, follow] of transports) {
      for (const person of subscribers) {
        const next = await follow(t, { port, headers: blog.people[person] }, args);
        all.push({ title: `${person}, ${transport}, ${args}`, person, next });
      }
    }
  }
  return all;
}

export async function hear(
  all: readonly Followed[],
  wordsOf: (person: Person) => readonly string[],
): Promise<void> {
  for (const { title, person, next } of all) {
    const words = wordsOf(person);
    assert.deepEqual(await read(next, words.length), words, title);
  }
}
