/** What all drivers share: how each kind of record is kept, and ports made of a driver's tables. */

import { AppError } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
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
  /** The lists of the records: one of all, and for the name of a member one for each value. */
  readonly lists: readonly ListName<T>[];
  /** The member with the id of the owner: a change of a record also counts for the owner's list. */
  readonly owner?: keyof T & string;
  /** The members that can change. */
  readonly changing: readonly (keyof T & string)[];
}
/** The members whose values select the records of a list: a name, or two with a space between. */
export type ListName<T> = 'all' | (keyof T & string) | `${keyof T & string} ${keyof T & string}`;

/** The records by the name of their table. */
export interface RecordOf {
  readonly posts: Post;
  readonly comments: Comment;
  readonly authors: Author;
  readonly accounts: Account;
  readonly todos: Todo;
  readonly articles: Article;
}
/** The records that have lists. */
export type Listed = 'posts' | 'comments' | 'todos' | 'articles';

export const kinds: { readonly [N in Listed]: Kind<RecordOf[N]> } = {
  posts: {
    order: 'DESC',
    texts: ['title', 'content'],
    lists: ['all', 'status', 'authorId', 'authorId status'],
    owner: 'authorId',
    changing: ['title', 'content', 'status'],
  },
  comments: {
    order: 'ASC',
    texts: ['content'],
    lists: ['all', 'postId'],
    owner: 'postId',
    changing: [],
  },
  todos: { order: 'ASC', texts: ['title'], lists: ['all'], changing: ['title', 'completed'] },
  articles: { order: 'ASC', texts: ['json'], lists: ['all'], changing: ['json'] },
};

/** The records of one kind, as each driver keeps them. */
export interface Table<T> {
  find(id: string): MaybePromise<T | undefined>;
  /** Returns a function from a value of the members in `name` to the list of that value. */
  list(name: ListName<T>): (value?: string) => List<T>;
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
      const status = 'DRAFT';
      return posts.add(
        { id: createId(), title, content, status, createdAt: now(), authorId },
        once,
      );
    },
  };
}

/** Adding a comment is left to the drivers, because its post must exist. */
export function toComments(comments: Table<Comment>): Pick<Comments, 'find' | 'remove' | 'ofPost'> {
  return {
    find: (id) => comments.find(id),
    remove: (id, options) => comments.remove(id, options),
    ofPost: comments.list('postId'),
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

/** Limit for the characters of all articles in a change of all (R39). */
export const changedLengthMax = 4 * 1024 * 1024;

/** The error for a change of all articles if they are longer than `changedLengthMax`. */
export function tooLongToChange(): AppError {
  return new AppError('content_too_large', 'All articles together are too long to be patched.');
}

/** The draft with its new id as the last member. A draft has a title, so it is not empty. */
export function withId({ json }: ArticleDraft, id: number): Article {
  return { id, json: `${json.slice(0, -1)},"id":${id}}` };
}
