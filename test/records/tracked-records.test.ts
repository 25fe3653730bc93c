/** What one response reads is noted: it is out of date when that has changed, and only then. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Records } from '../../dist/domain/readers.js';
import { TrackedRecords } from '../../dist/records/tracked-records.js';
import type { Author } from '../../dist/store/model.js';
import type { DatabaseStore, InitialData, Store } from '../../dist/store/store.js';
import { unsigned } from '../support/anyone.ts';
import { changing, toDraft } from '../support/article-texts.ts';
import { driverOptions } from '../support/driver-options.ts';
import { times } from '../support/lists.ts';
import { openOn, stores } from '../support/stores.ts';

/** Always the same ids, so that no two of them share a place in some runs. */
const toId = (number: number): string =>
  `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const toPost = (id: number, authorId: string | null) =>
  ({
    id: toId(id),
    title: 'a',
    content: 'b',
    status: 'DRAFT',
    createdAt,
    authorId,
    publishedAt: null,
  }) as const;
const toComment = (id: number, post: number) =>
  ({ id: toId(id), content: 'c', createdAt, postId: toId(post), ...unsigned }) as const;

const createdAt = '2026-01-01T00:00:00';
const ada: Author = { id: toId(1), name: 'Ada', email: 'ada@example.org', createdAt };
const [p, q, r, c, d, t, u] = [11, 12, 13, 21, 22, 31, 32].map(toId) as [
  ...[string, string, string, string, string, string, string],
];
/** The third record that is created is this one. */
const e = toId(103);
const initial: InitialData = {
  authors: [ada],
  accounts: [],
  posts: [toPost(11, ada.id), toPost(12, null)],
  comments: [toComment(21, 11), toComment(22, 12)],
  todos: [31, 32].map((id) => ({ id: toId(id), title: 'a', completed: false })),
  articles: [1, 2].map((id) => ({ id, json: `{"title":"a","id":${id}}` })),
};

/** Every way to reach records. */
const reads: Readonly<Record<string, (records: Records) => unknown>> = {
  posts: ({ posts }) => posts.list({}).read(),
  drafts: ({ posts }) => posts.list({ status: 'DRAFT' }).read(),

  'drafts of ada': ({ posts }) => posts.list({ author: ada.id, status: 'DRAFT' }).read(),
  'posts of ada': ({ posts }) => posts.list({ author: ada.id }).read(),
  'published of ada': ({ posts }) =>
    posts.list({ author: ada.id, status: 'PUBLISHED' }).read({ after: q }),
  'posts of nobody': ({ posts }) => posts.list({ author: r }).read(),
  'post p': ({ posts }) => posts.find(p),
  'post q': ({ posts }) => posts.find(q),
  'post r': ({ posts }) => posts.find(r),
  'comments of p': ({ comments }) => comments.ofPost(toPost(11, null)).read(),
  'comments of q': ({ comments }) => comments.ofPost(toPost(12, null)).read(),
  'comment c of p': ({ comments }) => comments.find(c),
  'comment d of q': ({ comments }) => comments.find(d),
  'comment e of p': ({ comments }) => comments.find(e),
  ada: ({ authors }) => authors.find(ada.id),
  todos: ({ todos }) => todos.all.read(),
  'todo t': ({ todos }) => todos.find(t),
  'todo u': ({ todos }) => todos.find(u),
  articles: ({ articles }) => articles.all.read(),
  'article 1': ({ articles }) => articles.find(1),
  'article 2': ({ articles }) => articles.find(2),
};

const lists = 'posts, drafts';
const ofAda = `${lists}, drafts of ada, posts of ada, published of ada`;
const retitle = changing((article) => ({ ...article, title: `${article.title}+` }));

/** What each write puts out of date. */
const writes: readonly (readonly [string, (store: Store) => unknown])[] = [
  ['', () => undefined],
  [ofAda, ({ posts }) => posts.create({ title: 'a', content: 'b', authorId: ada.id })],
  [lists, ({ posts }) => posts.create({ title: 'a', content: 'b', authorId: null })],
  // What reads comments of a post also reads whether it is there.
  [
    `${ofAda}, post p, comments of p, comment c of p`,
    ({ posts }) => posts.update(p, { title: 'b' }),
  ],
  ['comments of p, comment c of p, comment e of p', ({ comments }) => comments.add(p, 'e')],
  ['comments of q, comment d of q', ({ comments }) => comments.remove([d])],
  [
    'comments of q',
    async ({ comments }) => Promise.all(times(1_501).map(async () => comments.add(q, 'f'))),
  ],
  [
    '',
    ({ posts }) =>
      posts.update(p, { title: 'c' }, { expected: { title: 'no', content: 'b', status: 'DRAFT' } }),
  ],
  ['', ({ posts }) => posts.remove(r)],
  // One removal in one statement, one in steps.
  [
    `${ofAda}, post p, comments of p, comment c of p, comment e of p`,
    ({ posts }) => posts.remove(p),
  ],
  // Where the page behind it begins may be another place.
  [
    `${lists}, published of ada, post q, comments of q`,
    ({ posts }) => posts.update(q, { status: 'PUBLISHED' }),
  ],
  [`${lists}, published of ada, post q, comments of q`, ({ posts }) => posts.remove(q)],
  ['todos', ({ todos }) => todos.create({ title: 'a', completed: false })],
  ['todos, todo t', ({ todos }) => todos.update(t, { completed: true })],
  ['todos, todo u', ({ todos }) => todos.remove(u)],
  ['articles', ({ articles }) => articles.save(toDraft({ title: 'c' }))],
  ['articles, article 1', ({ articles }) => articles.save(toDraft({ title: 'c', id: 1 }))],
  ['articles, article 2', ({ articles }) => articles.change(2, retitle)],
  [
    'articles, article 1',
    ({ articles }) =>
      articles.changeAll((all) => all.map((each) => (each.id === 1 ? retitle(each) : each))),
  ],
];

/** The store in memory has no others. */
const addAccount: (typeof writes)[number] = [
  'ada',
  (store) => {
    const { id, email } = ada;
    const account = { id, email, username: 'ada', roles: [], passwordHash: 'scrypt$1$1$1$a$b' };
    return (store as DatabaseStore).storedAccounts.add(account);
  },
];

async function open(context: TestContext, url: string): Promise<Store> {
  let id = 100;
  const createId = (): string => toId((id += 1));
  return openOn(context, url, { ...driverOptions(), initial, createId });
}

for (const { name, skip, newUrl } of stores) {
  describe(`on a store ${name}`, { skip }, () => {
    it('records are current until what was read of them changes', async (context) => {
      const store = await open(context, await newUrl(context));
      if (store.askState !== undefined) return; // asked before each use: nothing is counted
      for (const [expected, write] of 'storedAccounts' in store
        ? [...writes, addAccount]
        : writes) {
        const all: (readonly [string, TrackedRecords])[] = [];
        for (const [read, make] of Object.entries(reads)) {
          const records = new TrackedRecords(store, { reader: undefined, run: 'run' });
          await make(records);
          all.push([read, records]);
        }
        await write(store);
        const found = all.filter(([, records]) => !records.isCurrent()).map(([read]) => read);
        assert.equal(found.join(', '), expected, String(write));
      }
    });
  });
}
