/** A process of its own that writes to a store under keys, for tests that kill it. */

import type { Once, Store } from '../../dist/store/store.js';
import { openStore } from '../../dist/store/open.js';
import { changing, toArticle, toDraft } from './article-texts.ts';
import { driverOptions } from './driver-options.ts';

/** A write of this kind, under this key. */
export interface Intent {
  readonly kind: 'post' | 'comment' | 'article' | 'count';
  readonly text: string;
  readonly once: Once;
}
export interface Answer {
  readonly text: string;
  readonly id: string;
  readonly isRepeated: boolean;
}

export const postId = '00000000-0000-7000-8000-000000000001';
const post = { id: postId, title: '', content: '', status: 'DRAFT', createdAt: '' } as const;
const initial = {
  authors: [],
  accounts: [],
  posts: [{ ...post, authorId: null }],
  comments: [],
  todos: [],
  articles: [toArticle({ id: 1, title: '', n: 0 })],
};
const count = changing(({ n, ...value }) => ({ ...value, n: Number(n) + 1 }));

const writes: Readonly<Record<Intent['kind'], (store: Store, intent: Intent) => unknown>> = {
  post: ({ posts }, { text, once }) =>
    posts.create({ title: text, content: '', authorId: null }, once),
  comment: ({ comments }, { text, once }) => comments.add(postId, text, once),
  article: ({ articles }, { text, once }) => articles.save(toDraft({ title: text }), once),
  count: ({ articles }, { once }) => articles.change(1, count, once),
};

export function openWritten(url: string): Promise<Store> {
  return openStore(url, driverOptions({ initial }));
}

if (process.send !== undefined && process.env['WRITER_URL'] !== undefined) {
  const store = await openWritten(process.env['WRITER_URL']);
  process.on('message', (intent: Intent) => {
    const answer = (result: unknown): void => {
      const { id = '' } = Object(result) as { readonly id?: string | number };
      const isRepeated = 'isRepeated' in Object(result);
      process.send?.({ text: intent.text, id: String(id), isRepeated } satisfies Answer);
    };
    Promise.resolve(writes[intent.kind](store, intent)).then(answer, () => process.exit(1));
  });
  process.send('open');
}
