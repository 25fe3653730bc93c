/** Stores with something of everything, their exports, and what they answer. */

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { faultOfName } from '../../dist/domain/comments.js';
import { createIdSource } from '../../dist/domain/ids.js';
import { openUploads } from '../../dist/store/files/open.js';
import { type Ended, runCommandHere } from './command.ts';
import { openOn, type StorePlace } from './stores.ts';
import { startServer } from './server.ts';
import { database } from './shared-postgres.ts';
import { bytes, createDirectory } from './uploads.ts';

export interface Place extends Readonly<Record<string, string>> {
  readonly STORE_URL: string;
  readonly UPLOAD_DIR: string;
}

/** Of a store beside others: it has no tables yet. */
export async function newPlace(t: TestContext, { name, newUrl }: StorePlace): Promise<Place> {
  const url = name === 'on PostgreSQL' ? await database.createDatabase() : await newUrl(t);
  return { STORE_URL: url, UPLOAD_DIR: await createDirectory(t) };
}

/** What no codec may lose: of each, texts of the same length are other texts. */
export const oddTexts: readonly string[] = [
  'a\0b',
  '\ud83d',
  '\udc00\ud800',
  '\u241a0000',
  '\u241a',
  '👩‍👩‍👧 e\u0301 é',
  '"\\/\b\f\n\r\t\u2028\u2029\u007f',
  '\ufeffbegins with a mark',
  '{"kind":"end"}',
  ' spaces around ',
];

const oddDocument = {
  title: 'numbers',
  big: 12345678901234568,
  exact: 0.30000000000000004,
  tiny: 5e-324,
  '10': 'a name that is a number',
  a: { '\u0000"\\~': [null, true, [], {}], '': '' },
  deep: JSON.parse(`${'['.repeat(60)}1${']'.repeat(60)}`) as unknown,
};

interface Filling {
  readonly posts: number;
  readonly commentsEach: number;
  /** Sizes of files in bytes. */
  readonly files: readonly number[];
}

export const smallFilling: Filling = { posts: 30, commentsEach: 3, files: [0, 1, 49_152, 150_001] };

/** Fills a store as its server does: with drafts, accounts, files and texts of every kind. */
export async function fill(t: TestContext, place: Place, filling = smallFilling): Promise<void> {
  await addAccount(place, 'ann', 'ADMIN');
  await addAccount(place, 'Zoë 😀', 'USER');
  const createId = createIdSource(() => new Date());
  const store = await openOn(t, place.STORE_URL, { createId, bytesMax: Number.MAX_SAFE_INTEGER });
  const [author] = (await store.storedAccounts?.list()) ?? [];
  const authorOf = (at: number) => (at % 3 === 0 ? null : (author?.id ?? null));
  const addPost = async (at: number): Promise<string> => {
    const odd = oddTexts[at % (2 * oddTexts.length)] ?? `post ${at}`;
    const authorId = authorOf(at);
    const content = odd.repeat(at % 7 === 0 ? 500 : 1);
    const post = await store.posts.create({ title: `x${odd}`, content: `x${content}`, authorId });
    assert.ok('title' in post);
    if (at % 4 !== 0) await store.posts.update(post.id, { status: 'PUBLISHED' });
    // A post that was published once keeps its date.
    if (at % 5 === 0) await store.posts.update(post.id, { status: 'DRAFT' });
    return post.id;
  };
  // Together: a database waits for the disk once for many.
  const ids = await Promise.all(Array.from({ length: filling.posts }, (_, at) => addPost(at)));
  const waiting: string[] = [];
  for (const [at, postId] of ids.entries()) {
    for (let n = 0; n < filling.commentsEach; n += 1) {
      const text = oddTexts[(at + n) % oddTexts.length];
      const isNamed = text !== undefined && faultOfName(text) === undefined;
      const by = { name: isNamed ? text : null, authorId: n === 0 ? authorOf(at) : null };
      const isPending = (at + n) % 5 === 0;
      const comment = await store.comments.add(postId, `${n} ${text}`, { ...by, isPending });
      if (isPending && at % 2 === 0) waiting.push(String(comment?.id));
    }
  }
  // Behind others, whose ids are later.
  for (const id of waiting) await store.comments.approve(id);
  for (const title of oddTexts) await store.todos.create({ title: `x${title}`, completed: true });
  for (const id of [undefined, 70, 9_007_199_254_740_991]) {
    const draft = { ...oddDocument, ...(id !== undefined && { id }) };
    await store.articles.save({ id, json: JSON.stringify(draft) });
  }
  await store.articles.remove(1);
  const uploads = await openUploads({
    directory: place.UPLOAD_DIR,
    openIndex: store.openFileIndex,
    requests: store.requests,
    createName: createId,
    filesMax: 100,
    bytesMax: 1e9,
    log: () => undefined,
  });
  t.after(() => uploads.close());
  for (const [at, size] of filling.files.entries()) {
    const upload = uploads.begin();
    const name = at === 1 ? 'ä "b" \u241a.txt' : `file-${at}.bin`;
    const file = await upload.write(name, bytes(randomBytes(size)));
    await upload.commit([file], at === 0 ? {} : { owner: author?.id });
    await upload.close();
  }
  await store.close();
}

export async function addAccount(place: Place, name: string, role: string): Promise<void> {
  const args = ['accounts', 'add', name, '--email', 'a@example.org', '--role', role];
  const { errors } = await runCommandHere(args, { env: place, input: `password of ${name}\n` });
  assert.equal(errors, '');
}

export function exportFrom(place: Place): Promise<Ended> {
  return runCommandHere(['export'], { env: place });
}

export function importTo(place: Place, input: string): Promise<Ended> {
  return runCommandHere(['import'], { env: place, input });
}

/** What a server on the store says to one who may read all. */
export async function answersOf(t: TestContext, place: Place): Promise<readonly string[]> {
  const server = await startServer(t, { env: { ...place, NODE_ENV: 'production' } });
  const read = async (path: string): Promise<string> => {
    const response = await server.fetch(path);
    const body = Buffer.from(await response.arrayBuffer());
    const type = response.headers.get('content-type');
    return `${path} ${response.status} ${type} ${createHash('sha256').update(body).digest('hex')}`;
  };
  const list = async (path: string) => (await (await server.fetch(path)).json()) as List;
  const posts = await list('/posts?limit=1000');
  const comments = await Promise.all(posts.map(({ id }) => list(`/posts/${id}/comments`)));
  const files = await list('/files');
  const query =
    '{ allPosts(first: 100) { id title rawTitle content status createdAt publishedAt author { id name email createdAt } comments { id name content createdAt author { id } } } }';
  const paths = [
    '/posts',
    '/posts?status=PUBLISHED',
    '/posts?limit=3',
    '/api/todos',
    '/api/articles',
    `/graphql?query=${encodeURIComponent(query)}`,
    ...posts.flatMap(({ id }) => [`/posts/${id}`, `/posts/${id}/comments`]),
    ...comments.flat().map(({ id }) => `/comments/${id}`),
    ...files.map(({ name = '' }) => `/files/${encodeURIComponent(name)}`),
  ];
  // An ETag of a file names its copy on the disk.
  const answers = [JSON.stringify(files.map((file) => ({ ...file, etag: '' })))];
  for (const path of paths) answers.push(await read(path));
  const login = { username: 'ann', password: 'password of ann' };
  answers.push(String((await server.send('POST', '/auth/login', login)).status));
  // The counter goes on.
  const article = await server.send('POST', '/api/articles', { title: 'next' });
  answers.push(String(article.headers.get('location')));
  await server.stop();
  return answers;
}

type List = readonly { readonly id: string; readonly name?: string }[];
