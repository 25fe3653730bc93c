/**
 * The port: what every driver keeps. A method is one atomic act. It may answer with a value or
 * with a promise of it, so that a driver in memory costs no promise. Ids are lower-case UUIDs;
 * a driver is never asked for anything that is not one. Nothing here validates input.
 */

import type { MaybePromise } from '../maybe-promise.ts';
import type { FileIndex, FileIndexOptions } from './file-index.ts';
import type { List } from './list.ts';
import type { Account, Article, ArticleDraft, Author, Comment, Post, Todo } from './model.ts';

export interface PostDraft {
  readonly title: string;
  readonly content: string;
  readonly authorId: string | null;
}

/** What of a post can change. */
export type PostTexts = Pick<Post, 'title' | 'content'>;

export interface Posts {
  /** Newest first (R2). */
  readonly all: List<Post>;
  /** The posts of an author, newest first. */
  ofAuthor(id: string): List<Post>;
  find(id: string): MaybePromise<Post | undefined>;
  create(draft: PostDraft): MaybePromise<Post>;
  /** False where there is no such post, or its texts are not those of `expected` any more. */
  update(id: string, change: PostTexts, expected?: PostTexts): MaybePromise<boolean>;
  /** Removes the post and its comments (R7). False as for `update`. */
  remove(id: string, expected?: PostTexts): MaybePromise<boolean>;
}

export interface Comments {
  find(id: string): MaybePromise<Comment | undefined>;
  /** Undefined where there is no such post: then nothing is stored. */
  add(postId: string, content: string): MaybePromise<Comment | undefined>;
  /** The comments of a post, oldest first (R2); none where there is no such post. */
  ofPost(id: string): List<Comment>;
  /**
   * Tells `listener` of every comment that is stored from now on, by any node, once each and in
   * the stored order; gives back how to stop that. Only a store with several writers has it: for
   * the others the caller of `add` knows the order.
   */
  readonly watch?: (listener: (comment: Comment) => void) => () => void;
}

export interface Authors {
  find(id: string): MaybePromise<Author | undefined>;
}

/**
 * Records that belong to many others, read with one statement. The records of one are in the order
 * of their list; one that has none may be absent. Undefined where all together are more than `max`.
 */
export interface Related {
  authors(ids: readonly string[]): MaybePromise<ReadonlyMap<string, Author>>;
  commentsOfPosts(ids: readonly string[], max: number): MaybePromise<Groups<Comment> | undefined>;
  postsOfAuthors(ids: readonly string[], max: number): MaybePromise<Groups<Post> | undefined>;
}
export type Groups<T> = ReadonlyMap<string, readonly T[]>;

/** The accounts that are given at every start (R20) and, beside them, those that are kept. */
export interface Accounts {
  /** A given account goes before a kept one of the same name. */
  find(username: string): MaybePromise<Account | undefined>;
  /** The same, with the same work for every name, so that the time tells nothing (R21). */
  findForLogin(username: string): MaybePromise<Account | undefined>;
}

/** Failed logins by key, which all nodes of a durable store count together (R21). */
export interface LoginFailures {
  /** Of each key that has some: how many, and the time until they no longer count. */
  find(keys: readonly string[]): MaybePromise<ReadonlyMap<string, FailureCount>>;
  /** Counts one for each key, in a window of time that begins with its first one. */
  add(keys: readonly string[], windowMilliseconds: number): Promise<void>;
  forget(key: string): Promise<void>;
  /**
   * Gives the caller the next turn under this key, and says in how many milliseconds that is. Turns
   * come at this interval, whichever node has them.
   */
  takeTurn(key: string, intervalMilliseconds: number): Promise<number>;
}

export type FailureCount = Readonly<Record<'count' | 'millisecondsLeft', number>>;

/** The accounts that a durable store keeps: what `accounts` on the command line changes. */
export interface KeptAccounts {
  find(username: string): MaybePromise<Account | undefined>;
  /** By username, from behind `after`, and without what their passwords were made into. */
  list(range?: AccountRange): MaybePromise<readonly Omit<Account, 'passwordHash'>[]>;
  /** Makes the account an author, too (R20). False where the name is taken: nothing changes. */
  add(account: Account): MaybePromise<boolean>;
  /** Its author gets the same email, as one act. False where there is no such account. */
  change(username: string, changes: AccountChanges): MaybePromise<boolean>;
  /** The author stays, and so do the posts. False where there is no such account. */
  remove(username: string): MaybePromise<boolean>;
}

export interface AccountRange {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/** What is left out stays as it is. */
export interface AccountChanges {
  readonly email?: string | undefined;
  readonly roles?: readonly string[] | undefined;
  readonly passwordHash?: string | undefined;
}

export interface Todos {
  /** In the order they came (R2). */
  readonly all: List<Todo>;
  find(id: string): MaybePromise<Todo | undefined>;
  create(draft: Omit<Todo, 'id'>): MaybePromise<Todo>;
}

export interface Articles {
  /** By id (R2). */
  readonly all: List<Article>;
  find(id: number): MaybePromise<Article | undefined>;
  /** Without an id: stored under the next counter value that is free (R15). */
  save(draft: ArticleDraft): MaybePromise<Article>;
  /**
   * Reads, changes and saves one article as one act: no other change comes between. What
   * `change` throws leaves the article as it was. Undefined where there is no such article.
   */
  change(id: number, change: (article: Article) => Article): MaybePromise<Article | undefined>;
  /** The same for all articles, by id; `change` gives back as many with the same ids. */
  changeAll(change: (articles: readonly Article[]) => readonly Article[]): MaybePromise<void>;
}

/**
 * What is written apart from the rest: a table of its own in every driver. A port's methods read
 * the area of its name; those of comments also say whether a post is there.
 */
export type Area = 'posts' | 'comments' | 'authors' | 'todos' | 'articles';

/** A number for each area, which every change of it moves on before it is acknowledged. */
export type Versions = Record<Area, number>;

/** What answers are made from. */
export type Records = Pick<Store, Area | 'related'>;

export interface Store {
  /** True where a record is the same object each time that it is read, until it is changed. */
  readonly keepsObjects: boolean;
  /** Only a store for which many records in one act are less work than each by itself has it. */
  readonly related?: Related | undefined;
  readonly posts: Posts;
  readonly comments: Comments;
  readonly authors: Authors;
  readonly accounts: Accounts;
  /** Only a store that outlives the process has it. */
  readonly loginFailures?: LoginFailures;
  readonly todos: Todos;
  readonly articles: Articles;
  /**
   * The versions of now: as long as those of some areas stand still, so does what is read there.
   * Undefined for a driver that cannot tell (others write to it too).
   */
  versions(): Readonly<Versions> | undefined;
  /** Settles when the store answers; rejects where it is away. */
  ping(): MaybePromise<void>;
  /** The index of stored files. Only a store that outlives the process has it. */
  readonly openFileIndex?: (options: FileIndexOptions) => Promise<FileIndex>;
  close(): MaybePromise<void>;
}
