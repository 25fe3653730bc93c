/**
 * The port of all drivers, and the options with which they are opened. A method is one atomic
 * operation. It may return a value or a promise, so that the in-memory driver needs no promises.
 * Ids are lower-case UUIDs, which the caller has validated, as it has every input.
 */

import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Changes } from './changes.ts';
import type { AfterRange, Place, PlacedPage } from './comments-after.ts';
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
  /** As `read`; records may come as JSON with these members, the id first. */
  readJson?(range: Range, members: readonly string[]): MaybePromise<Page<T | RecordText>>;
  /** True if there are more than `count` records, which are not read. `after`: as in a range. */
  exceeds(count: number, after?: Range['after']): MaybePromise<boolean>;
}

export type { Changed, Once, Repeated } from './once.ts';

/** A record as JSON. */
export interface RecordText {
  readonly id: string | number;
  readonly json: string;
}

export interface Range {
  /** If this record was removed, reading starts at the position where it was. */
  readonly after?: string | number | undefined;
  /** Maximum number of records in a page; long records make a page shorter. */
  readonly limit?: number | undefined;
}

export interface Page<T> {
  readonly records: readonly T[];
  /** Reads the next page; undefined for the last one. */
  readonly next: (() => MaybePromise<Page<T>>) | undefined;
}

/** Records of a page: they take a few milliseconds. */
export const pageRecordsMax = 500;

/** The writes that were done under a key in the last 24 hours. A write and its key are one act. */
export interface Requests {
  /**
   * Undefined for a new key. If the key is stored before the write begins, the write finds it.
   * Throws `idempotency_key_reused` also if only another write of another request has the key.
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
  add(postId: string, content: string, once?: Once): MaybePromise<Comment | Repeated | undefined>;
  /** Returns false if the comment does not exist. */
  remove(id: string, options?: ChangeOptions<object>): MaybePromise<Changed>;
  /** The comments of a post, oldest first (R2); empty if the post does not exist. */
  ofPost(id: string): List<Comment>;
  /**
   * The place of a comment, when the listener has had it; undefined if there is no such comment.
   * `placeOf` and `after` need a listener if `watch` is present (R41).
   */
  placeOf(id: string): MaybePromise<Place | undefined>;
  /** Reads a page of the comments after a place, in the order stored. */
  after(place: Place, range: AfterRange): MaybePromise<PlacedPage>;
  /**
   * Calls `listener` with every comment stored from now on by any node, once each, in the order
   * stored. Returns a function that stops this. One listener at a time: the topic of comments has
   * the subscribers. Present only if several nodes can write: otherwise the callers of `add` know
   * the order.
   */
  readonly watch?: (listener: (comment: Comment) => void) => () => void;
  /**
   * Settles when the listener gets every comment that any node stores from then on; undefined if it
   * does already. Rejects as a read does. Present if `watch` is.
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

/** The accounts in a durable store, which the command `accounts` changes. */
export interface StoredAccounts {
  find(username: string): MaybePromise<Account | undefined>;
  /** Lists by username, without password hashes. */
  list(): MaybePromise<readonly Omit<Account, 'passwordHash'>[]>;
  /** Also creates the author (R20). Returns false, and changes nothing, if the name is taken. */
  add(account: Account): MaybePromise<boolean>;
  /** Returns false if the account does not exist. */
  changePassword(username: string, passwordHash: string): MaybePromise<boolean>;
  /** Author and posts remain. Returns false if the account does not exist. */
  remove(username: string): MaybePromise<boolean>;
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
   * The present counts of changes, by this process and others. Each change is counted before it is
   * acknowledged. With `readChanges`, those that were read last: what is read later is not older.
   */
  changes(): Changes;
  /**
   * Reads the counts of a moment after the call; rejects as a read does. Present only if other
   * processes write too, and the driver has to ask.
   */
  readonly readChanges?: () => Promise<unknown>;
  /** The number of reads that were sent so far. Present if `readChanges` is. */
  readonly readsSent?: () => number;
  /** Settles when the store responds; rejects if it does not. */
  ping(): MaybePromise<void>;
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

/** `initial` is the content of a new store; a durable store gets it only once. */
export interface DriverOptions extends MemoryStoreOptions {
  readonly log: Log;
  /** The database server for notifications of comments; empty: the one with the records. */
  readonly listenUrl: string;
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

export interface CheckOptions extends StartOptions {
  /** Gets the index of stored files, if the database has one; what it throws is thrown. */
  readonly checkFiles: (index: Pick<DurableFileIndex, 'folderId' | 'list'>) => Promise<void>;
}

export interface AccountsOptions extends StartOptions, Pick<DriverOptions, 'now'> {
  /** False: a SQLite file that does not exist is an error. */
  readonly mayCreate: boolean;
}

/** `initial` is undefined if these records are left to the start of a server. */
export interface DatabaseOptions
  extends AccountsOptions, Omit<DriverOptions, 'initial' | 'bytesMax'> {
  readonly initial: InitialData | undefined;
}

export interface DatabaseStore extends Store {
  readonly storedAccounts: StoredAccounts;
}
