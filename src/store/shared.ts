/** What all drivers share: how each kind of record is kept, and ports made of a driver's tables. */

import { AppError } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { PlacedComment } from './comments-after.ts';
import type { Account, Article, ArticleDraft, Author, Comment, Post, Todo } from './model.ts';
import type {
  Accounts,
  Changed,
  ChangeOptions,
  Comments,
  DriverOptions,
  List,
  Once,
  Posts,
  Repeated,
  Todos,
} from './store.ts';

/** Records are ordered by the time at which they were stored, articles by id (R2). */
export type Order = 'ASC' | 'DESC';

/** How records are kept. */
export interface Kind<T> {
  readonly order: Order;
  /** The members with the client's texts, which have any length. */
  readonly texts: readonly (keyof T & string)[];
  /** Those with short texts of the client. */
  readonly names?: readonly (keyof T & string)[];
  /** The lists of the records: one of all, and for the name of a member one for each value. */
  readonly lists: readonly ListName<T>[];
  /** The member with the id of the owner: a change of a record also counts for the owner's list. */
  readonly owner?: keyof T & string;
  /** The members that can change. */
  readonly changing: readonly (keyof T & string)[];
  /** The members that a change sets if they are null; they stay. */
  readonly lasting?: readonly (keyof T & string)[];
  /** Lists of the records with this status are ordered by the date in a member, then by id. */
  readonly dated?: { readonly status: string; readonly member: keyof T & string };
}
/** The members whose values select the records of a list: a name, or two with a space between. */
export type ListName<T> = 'all' | (keyof T & string) | `${keyof T & string} ${keyof T & string}`;

/** The records by the name of their table. */
export interface RecordOf {
  readonly posts: Post;
  readonly comments: Comment;
  readonly pending_comments: Comment;
  readonly authors: Author;
  readonly accounts: Account;
  readonly todos: Todo;
  readonly articles: Article;
}
/** The records that have lists. */
export type Listed = 'posts' | 'comments' | 'pending_comments' | 'todos' | 'articles';

const comments: Kind<Comment> = {
  order: 'ASC',
  texts: ['content'],
  names: ['name'],
  lists: ['all', 'postId'],
  owner: 'postId',
  changing: [],
};

export const kinds: { readonly [N in Listed]: Kind<RecordOf[N]> } = {
  posts: {
    order: 'DESC',
    texts: ['title', 'content'],
    lists: ['all', 'status', 'authorId', 'authorId status'],
    owner: 'authorId',
    changing: ['title', 'content', 'status'],
    lasting: ['publishedAt'],
    dated: { status: 'PUBLISHED', member: 'publishedAt' },
  },
  comments,
  pending_comments: comments,
  todos: { order: 'ASC', texts: ['title'], lists: ['all'], changing: ['title', 'completed'] },
  articles: { order: 'ASC', texts: ['json'], lists: ['all'], changing: ['json'] },
};

/**
 * Of so many posts that were removed last, and had been published, the dates stay: a page that
 * begins after one of them begins at its place (R49).
 */
export const removedPostsMax = 10_000;

/** The place of a post among those that are published, as a text that is compared by bytes. */
export function placeOf(publishedAt: string, id: string): string {
  return `${publishedAt} ${id}`;
}

/** The end of the last year with four digits. */
const lastMilliseconds = Date.UTC(10_000, 0) - 1;

/**
 * The date by which a post is placed of which none is known: as if it had been published when its
 * id was made. So a post that nobody may read is not told from one that does not exist (R44).
 */
export function dateById(id: string): string {
  const milliseconds = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  const date = new Date(Math.min(milliseconds, lastMilliseconds));
  return date.toISOString().replace(/\.?0*Z$/, '');
}

/** The records of one kind, as each driver keeps them. */
export interface Table<T> {
  find(id: string): MaybePromise<T | undefined>;
  /** Returns a function from a value of the members in `name` to the list of that value. */
  list(name: ListName<T>, order?: Order): (value?: string) => List<T>;
  add(record: T, once?: Once): MaybePromise<T | Repeated>;
  /** `update` and `remove` return false if no such record exists, or not with `expected`. */
  update(id: string, change: Partial<T>, options?: Options<T>): MaybePromise<Changed>;
  remove(id: string, options?: Options<T>): MaybePromise<Changed>;
}

export type Options<T> = ChangeOptions<Partial<T>>;

type Deps = Pick<DriverOptions, 'createId' | 'now'>;

export function toPosts(posts: Table<Post>, { createId, now }: Deps): Posts {
  const ofAuthor = posts.list('authorId');
  const ofAuthorAndStatus = posts.list('authorId status');
  return {
    ...posts,
    all: posts.list('all')(),
    ofAuthor: (id, status) =>
      status === undefined ? ofAuthor(id) : ofAuthorAndStatus(`${id} ${status}`),
    ofStatus: posts.list('status'),
    create({ title, content, authorId }, once) {
      const [id, status, createdAt] = [createId(), 'DRAFT' as const, now()];
      const publishedAt = null;
      return posts.add({ id, title, content, status, createdAt, authorId, publishedAt }, once);
    },
    update(id, change, options) {
      const publishedAt = change.status === 'PUBLISHED' ? now() : undefined;
      return posts.update(id, publishedAt ? { ...change, publishedAt } : change, options);
    },
  };
}

/** Writing comments is left to the drivers, because their posts must exist. */
export function toComments(
  table: Table<Comment>,
  pending: Table<Comment>,
): Pick<Comments, 'find' | 'ofPost' | 'all' | 'pending'> {
  const toPort = (each: Table<Comment>) => ({
    find: (id: string) => each.find(id),
    ofPost: each.list('postId'),
    all: each.list('all', 'DESC')(),
  });
  return { ...toPort(table), pending: toPort(pending) };
}

/** Tells the listener of `watch`, in a process that alone stores comments. */
export function createListening() {
  let listener: ((placed: PlacedComment) => void) | undefined;
  return {
    watch: (given: (placed: PlacedComment) => void): (() => void) => {
      listener = given;
      return () => {
        if (listener === given) listener = undefined;
      };
    },
    tell: (placed: PlacedComment): void => listener?.(placed),
  };
}

export function toTodos(todos: Table<Todo>, { createId }: Pick<Deps, 'createId'>): Todos {
  return {
    ...todos,
    all: todos.list('all')(),
    create: ({ title, completed }, once) => todos.add({ id: createId(), title, completed }, once),
  };
}

/** No account has a longer name (auth/accounts.ts), so the database is not asked for one. */
const usernameLengthMax = 256;

/**
 * The accounts that can log in: those configured at every start (R20), which every driver holds in
 * memory, and those in a durable store. `stored` is asked each time: changes by a command apply at
 * once, on every node.
 */
export function createAccounts(
  configured: readonly Account[],
  stored: Pick<Accounts, 'find'> = { find: () => undefined },
): Accounts {
  const byUsername = new Map(configured.map((account) => [account.username, account]));
  const findStored: Accounts['find'] = (username) =>
    username.length > usernameLengthMax ? undefined : stored.find(username);
  return {
    find: (username) => byUsername.get(username) ?? findStored(username),
    findForLogin: (username) =>
      andThen(findStored(username), (account) => byUsername.get(username) ?? account),
  };
}

/** Limit for the bytes of all articles in a change of all (R39). */
export const changedLengthMax = 4 * 1024 * 1024;

/** The error for a change of all articles if they are longer than `changedLengthMax`. */
export function tooLongToChange(): AppError {
  return new AppError('content_too_large', 'All articles together are too long to be patched.');
}

/** The draft with its new id as the last member. A draft has a title, so it is not empty. */
export function withId({ json }: ArticleDraft, id: number): Article {
  return { id, json: `${json.slice(0, -1)},"id":${id}}` };
}
