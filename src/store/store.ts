/**
 * The port of all drivers, and the options with which they are opened. A method is one atomic
 * operation. It may return a value or a promise, so that the in-memory driver needs no promises.
 * Ids are lower-case UUIDs, which the caller has validated, as it has every input.
 */

import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Changes } from './changes.ts';
import type { AddOptions, AfterRange, Place, PlacedComment, PlacedPage } from './comments-after.ts';
import type { DurableFileIndex, FileLimits } from './file-index.ts';
import type { Changed, Once, Repeated } from './once.ts';
import type { Account, Article, ArticleDraft, Author, Comment, Post, Todo } from './model.ts';

/**
 * Records in a fixed order. Several pages are not a snapshot: each record appears at most once, and
 * one that exists from the first page to the last does appear.
 */
export interface List<T> {
  /** Reads the first page: from the start, or after the record with the id `after`. */
  read(range?: Range): MaybePromise<Page<T>>;
}

export type { Changed, Once, Repeated } from './once.ts';

export interface Range {
  /** If this record was removed, reading starts at the position where it was. */
  readonly after?: string | number | undefined;
  /** Maximum number of records in a page; long records make a page shorter. */
  readonly limit?: number | undefined;
}

export interface Page<T> {
  readonly records: readonly T[];
  /** How many of those read it lacks, with copies of the others. With it, any page may be short. */
  readonly leftOut?: number;
  /** Reads the next page; undefined for the last one. */
  readonly next: (() => MaybePromise<Page<T>>) | undefined;
}

/** Records of a page: they take a few milliseconds. */
export const pageRecordsMax = 500;

/** The writes that were done under a key in the last 24 hours. A write and its key are one act. */
export interface Requests {
  /**
   * Undefined for a new key. If the key is stored before the write begins, the write finds it.
   * Throws `idempotency_key_reused` if another request has the key.
   */
  find(once: Once): MaybePromise<Repeated | undefined>;
}

export interface ChangeOptions<M> {
  /** The record is changed only if it still has these members. */
  readonly expected?: M | undefined;
  readonly once?: Once | undefined;
  /** When the request began its first read, by `performance.now`, if one time limit spans both. */
  readonly askedAt?: number | undefined;
}

type PostDraft = Pick<Post, 'title' | 'content' | 'authorId'>;

/** The members of a post that can change. */
export type PostMembers = Pick<Post, 'title' | 'content' | 'status'>;
/** The members of a todo that can change. */
export type TodoMembers = Pick<Todo, 'title' | 'completed'>;

export interface Posts {
  /** Newest first (R2). */
  readonly all: List<Post>;
  /** The posts of an author, all or those with a status, newest first (R46). */
  ofAuthor(id: string, status?: Post['status']): List<Post>;
  /** The posts with a status, newest first (R37). */
  ofStatus(status: Post['status']): List<Post>;
  find(id: string): MaybePromise<Post | undefined>;
  create(draft: PostDraft, once?: Once): MaybePromise<Post | Repeated>;
  /**
   * Changes the given members. Returns false if the post does not exist, or its members are not
   * those of `expected`.
   */
  update(
    id: string,
    change: Partial<PostMembers>,
    options?: ChangeOptions<PostMembers>,
  ): MaybePromise<Changed>;
  /** Removes the post and its comments (R7). Returns false as `update` does. */
  remove(id: string, options?: ChangeOptions<PostMembers>): MaybePromise<Changed>;
}

export interface Comments {
  find(id: string): MaybePromise<Comment | undefined>;
  /** Returns undefined, and stores nothing, if the post does not exist. */
  add(
    postId: string,
    content: string,
    options?: AddOptions,
  ): MaybePromise<Comment | Repeated | undefined>;
  /** Places a comment that waits, as if stored now. False: it is not there, or is placed now. */
  approve(id: string, options?: ChangeOptions<object>): MaybePromise<Changed>;
  /** Removes comments, also those that wait. Returns false, and removes none, if one is missing. */
  remove(ids: readonly string[], options?: ChangeOptions<object>): MaybePromise<Changed>;
  /** The comments of a post, oldest first (R2); empty if the post does not exist. */
  ofPost(id: string): List<Comment>;
  /** Newest first (R52). */
  readonly all: List<Comment>;
  readonly pending: Pick<Comments, 'find' | 'ofPost' | 'all'>;
  /** The place of a comment; undefined if there is no such comment. */
  placeOf(id: string): MaybePromise<Place | undefined>;
  /**
   * Reads a page of the comments after a place, in the order stored (R41). A comment that is not in
   * the last page, and comes after it, is told to the listener after this call.
   */
  after(place: Place, range: AfterRange): MaybePromise<PlacedPage>;
  /**
   * Calls `listener` with every comment stored from now on by any node, once each, in the order
   * stored. Returns a function that stops this. One listener at a time: the topic of comments has
   * the subscribers.
   */
  watch(listener: (placed: PlacedComment) => void): () => void;
  /**
   * Settles when the listener gets every comment that any node stores from then on; undefined if it
   * does already. Rejects as a read does. Present if several nodes can write.
   */
  readonly ready?: () => Promise<unknown> | undefined;
}

interface Authors {
  find(id: string): MaybePromise<Author | undefined>;
}

/** The accounts configured for this start (R20), and those that a durable store keeps. */
export interface Accounts {
  /** A configured account takes precedence over a stored one with the same name. */
  find(username: string): MaybePromise<Account | undefined>;
  /** Like `find`, with the same work for every name, so that the time reveals nothing (R21). */
  findForLogin(username: string): MaybePromise<Account | undefined>;
}

/** What becomes of what a removed account has left. By default, author and posts remain. */
export interface Legacy {
  /** The id of the author that gets the posts. */
  readonly postsTo?: string | undefined;
  /** The author goes: what it has left, its comments too, has no author and no name then. */
  readonly isErased?: boolean;
}

/** The accounts in a durable store, which the command `accounts` and their owners change (R51). */
export interface StoredAccounts {
  find(username: string): MaybePromise<Account | undefined>;
  list(): MaybePromise<readonly Omit<Account, 'passwordHash'>[]>; // by username
  /** Also creates the author (R20). Returns false, and changes nothing, if the name is taken. */
  add(account: Account): MaybePromise<boolean>;
  /** Changes address and roles. This and what follows returns false if there is no such account. */
  change(username: string, change: Partial<Account>): MaybePromise<boolean>;
  /** Returns false also if the hash is not `expected` any more. */
  changePassword(username: string, hash: string, expected?: string): MaybePromise<boolean>;
  remove(username: string, legacy?: Legacy): MaybePromise<boolean>;
}

export interface Todos {
  /** In the order created (R2). */
  readonly all: List<Todo>;
  find(id: string): MaybePromise<Todo | undefined>;
  create(draft: TodoMembers, once?: Once): MaybePromise<Todo | Repeated>;
  /** As for posts. */
  update(
    id: string,
    change: Partial<TodoMembers>,
    options?: ChangeOptions<TodoMembers>,
  ): MaybePromise<Changed>;
  remove(id: string, options?: ChangeOptions<TodoMembers>): MaybePromise<Changed>;
}

export interface Articles {
  /** By id (R2). */
  readonly all: List<Article>;
  find(id: number): MaybePromise<Article | undefined>;
  /** A draft without id is stored under the next free value of the counter (R15). */
  save(draft: ArticleDraft, once?: Once): MaybePromise<Article | Repeated>;
  /** Stores a new article under its id. Returns undefined, and stores nothing, if it is taken. */
  create(article: Article, once?: Once): MaybePromise<Article | Repeated | undefined>;
  /** As for posts. The counter does not return the id again. */
  remove(id: number, options?: ChangeOptions<Article>): MaybePromise<Changed>;
  /**
   * Reads, changes and saves one article atomically. Calls `change` in a turn of the scheduler, and
   * again if the article was changed meanwhile. If `change` throws, the article does not change.
   * Returns undefined if the article does not exist.
   */
  change(
    id: number,
    change: (article: Article) => Article,
    once?: Once,
  ): MaybePromise<Article | Repeated | undefined>;
  /**
   * Like `change`, for all articles, ordered by id; `change` must keep their number and ids. Throws
   * `content_too_large` before that if the articles are longer than `changedLengthMax` together.
   */
  changeAll(
    change: (articles: readonly Article[]) => readonly Article[],
    once?: Once,
  ): MaybePromise<Repeated | undefined>;
}

export interface Store {
  /** True if a record is the same object for each read, until it changes. */
  readonly keepsObjects: boolean;
  readonly posts: Posts;
  readonly comments: Comments;
  readonly authors: Authors;
  readonly accounts: Accounts;
  readonly todos: Todos;
  readonly articles: Articles;
  readonly requests: Requests;
  /**
   * The present counts of changes by this process; with SQLite, those of others too. Each change is
   * counted before it is acknowledged. A store that has `askState` counts none.
   */
  changes(): Changes;
  /**
   * Present if `changes` cannot count what other processes write: asks for a text that is
   * the same as long as nothing is committed. Undefined if that is not known. Never rejects.
   */
  readonly askState?: () => Promise<string | undefined>;
  /** Settles when the store responds; rejects if it does not. */
  ping(): MaybePromise<void>;
  /** Present only if the store outlives the process. */
  readonly storedAccounts?: StoredAccounts;
  /** Opens the index of stored files. Present only if the store outlives the process. */
  readonly openFileIndex?: (limits: FileLimits) => DurableFileIndex;
  close(): MaybePromise<void>;
}

/** The content of a new store. Posts and comments are ordered oldest first. */
export interface InitialData {
  readonly authors: readonly Author[];
  readonly accounts: readonly Account[];
  readonly posts: readonly Post[];
  readonly comments: readonly Comment[];
  readonly todos: readonly Todo[];
  readonly articles: readonly Article[];
}

export interface MemoryStoreOptions {
  readonly createId: () => string;
  /** The present local date-time, as records store it. */
  readonly now: () => string;
  readonly initial: InitialData;
  /** Approximate limit for the memory of the records; `storage_full` beyond it. */
  readonly bytesMax: number;
  readonly run: RunInTurn;
}

export type UrlSetting = 'STORE_URL' | 'STORE_LISTEN_URL';

/** `initial` is the content of a new store; a durable store gets it only once. */
export interface DriverOptions extends MemoryStoreOptions {
  readonly log: Log;
  /** The database server for notifications of comments; empty: the one with the records. */
  readonly listenUrl: string;
  /** STORE_URL or STORE_LISTEN_URL as it is now: it may have a new password. */
  readonly readUrl?: ((name: UrlSetting) => string) | undefined;
  /** The maximum number of connections to a database server. */
  readonly connectionsMax: number;
  /** Time limit for one statement on a database server. */
  readonly timeoutSeconds: number;
  /** Called with the duration of each statement that reads, and each transaction that writes. */
  readonly timed?: TimeStatement | undefined;
}

export type TimeStatement = (kind: 'read' | 'write', milliseconds: number) => void;

export interface StartOptions extends Pick<DriverOptions, 'log' | 'timeoutSeconds'> {
  /** How long to wait for a database server that does not respond. */
  readonly startSeconds: number;
}

export interface CheckOptions extends StartOptions, Pick<DriverOptions, 'connectionsMax'> {
  /** Where the server listens for notifications, if not at the store itself. */
  readonly listenUrl: string;
  /** A record of each kind, with ids that nothing has. */
  readonly sample: InitialData;
  /** Gets the index of stored files, if the database has one; what it throws is thrown. */
  readonly checkFiles: (index: Pick<DurableFileIndex, 'folderId' | 'list'>) => Promise<void>;
}

export interface AccountsOptions extends StartOptions, Pick<DriverOptions, 'now'> {
  /** False: a SQLite file that does not exist is an error. */
  readonly mayCreate: boolean;
}

/** `initial` is undefined if these records are left to a server. */
export interface DatabaseOptions
  extends AccountsOptions, Omit<DriverOptions, 'initial' | 'bytesMax'> {
  readonly initial: InitialData | undefined;
}

export interface DatabaseStore extends Store {
  readonly storedAccounts: StoredAccounts;
}
