/**
 * Comments as events: adding one, and the topic that subscribers read. A comment is stored, then
 * published, in the order stored (Spec §6 rule 1, R30).
 */

import { AppError } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { PlacedComment } from '../store/comments-after.ts';
import type { Account, Comment, Post } from '../store/model.ts';
import type { Once, Store } from '../store/store.ts';
import { mayRead, moderates, type Reader } from './readers.ts';

/** Comments queued for one subscription before they become events; sockets have limits too. */
const commentsQueuedMax = 4_096;
/** Approximate memory of a comment without its text, in bytes. */
const commentBytes = 512;

/** What decides who may read a post. */
export type PostAccess = Pick<Post, 'status' | 'authorId'>;

/** A comment as subscribers get it. */
export interface Announced extends PlacedComment {
  /** Its post when the event was made (R44), if posts have owners; undefined if it was not read. */
  readonly post?: Promise<PostAccess | undefined>;
}

interface CommentsOptions extends AddOptions {
  /** See `TopicOptions`. */
  readonly queueBytesMax: number;
  readonly hasOwners: boolean;
}

/** `addComment`, and the topic of added comments. */
export function createComments(store: CommentStore, options: CommentsOptions) {
  const { queueBytesMax, hasOwners } = options;
  const { comments, posts } = store;
  const readPost = async ({ comment }: PlacedComment): Promise<PostAccess | undefined> => {
    try {
      const post = await posts.find(comment.postId);
      return post && { status: post.status, authorId: post.authorId };
    } catch {
      return undefined; // each group reads it again
    }
  };
  const commentAdded = createTopic<Announced>({
    // Once for all groups; a database reads the posts of comments that come together together.
    follow: (publish) =>
      comments.watch((placed) => {
        publish(hasOwners ? { ...placed, post: readPost(placed) } : placed);
      }),
    queueMax: commentsQueuedMax,
    queueBytesMax,
    bytesOf: ({ comment }) => commentBytes + comment.content.length * 2,
  });
  return { commentAdded, addComment: createAddComment(store, options) };
}

type CommentStore = Pick<Store, 'comments' | 'posts' | 'requests'>;

interface AddOptions {
  /** Throws if there were too many comments without a token from this address; if limited. */
  readonly admitComment?: ((client: string) => void) | undefined;
}

/** Who adds a comment. */
export interface Commenter {
  readonly reader: Reader | undefined;
  /** The account of its token. */
  readonly account: Pick<Account, 'id'> | undefined;
  /** Returns its address (R34). */
  readonly client: () => string;
}

export interface CommentDraft extends Pick<Comment, 'postId' | 'content'> {
  readonly name?: string | null | undefined;
}

/** A comment that was added, or that was before. */
export interface Added {
  readonly id: string;
  /** It waits until it is approved (R48). */
  readonly isPending?: boolean;
}

export type AddComment = ReturnType<typeof createAddComment>;

export function createAddComment(
  { comments, posts, requests }: CommentStore,
  { admitComment }: AddOptions = {},
) {
  /**
   * Returns undefined if the post does not exist for the reader (R44): nothing is stored or
   * published then. A write that was done before is found first, as if the post had been removed,
   * and whatever else has come from the address (R48).
   */
  return (
    { reader, account, client }: Commenter,
    { postId, content, name }: CommentDraft,
    once?: Once,
  ): MaybePromise<Added | undefined> => {
    const options = { once, name, authorId: account?.id };
    const add = (isPending = false) => comments.add(postId, content, { ...options, isPending });
    const admit = account === undefined ? admitComment : undefined;
    if (reader === undefined && admit === undefined) return add();
    const addIfRead = () =>
      andThen(posts.find(postId), (post) => {
        if (post === undefined || !mayRead(reader, post)) return undefined;
        admit?.(client());
        return add(reader?.isModerated === true && !moderates(reader, post));
      });
    const added = andThen(once && requests.find(once), (before) => before ?? addIfRead());
    if (reader?.isModerated !== true) return added;
    return andThen(added, (made) => {
      if (made === undefined) return undefined;
      const pending = comments.pending.find(made.id);
      return andThen(pending, (found) => ({ ...made, isPending: found !== undefined }));
    });
  };
}

const nameLengthMax = 100;
/** Control characters, and the separators of lines and paragraphs. */
const notInLine = /[\p{Cc}\u2028\u2029]/u;

/** What is wrong with the name that a writer gives (R48); undefined if nothing is. */
export function faultOfName(name: string): string | undefined {
  // A character has one or two units: a long text is not taken apart.
  const isLong = name.length > 2 * nameLengthMax || Array.from(name).length > nameLengthMax;
  if (isLong) return `must have at most ${nameLengthMax} characters`;
  if (notInLine.test(name)) return 'must be one line';
  return name.trim() === '' ? 'must not be blank' : undefined;
}

interface TopicOptions<T> {
  /** The memory that a value takes, in bytes. */
  readonly bytesOf: (value: T) => number;
  /** Values that may be queued for one subscriber. */
  readonly queueMax: number;
  /**
   * Bytes of values that may be queued for one subscriber; a single value may exceed it. It also
   * bounds all queues together, because they hold the same, latest values.
   */
  readonly queueBytesMax: number;
  /**
   * A source of values, followed while there are subscribers. Returns a function that
   * stops following.
   */
  readonly follow?: (publish: (value: T) => void) => () => void;
}

export type Topic<T> = ReturnType<typeof createTopic<T>>;

/**
 * A bounded topic: every subscriber gets what is published, in that order. There is no replay: a
 * subscriber gets only values published after `subscribe()`.
 */
export function createTopic<T>(options: TopicOptions<T>) {
  const subscribers = new Set<TopicQueue<T>>();
  let stop: (() => void) | undefined;
  /** Queues `value` for every subscriber. Never throws and never waits. */
  const publish = (value: T): void => {
    // A Set allows a subscriber to be removed during the iteration.
    for (const subscriber of subscribers) subscriber.push(value);
  };
  return {
    publish,
    /**
     * The subscription begins with this call, not with the first `next()`. A subscriber whose queue
     * is full is dropped: its `next()` rejects once with `overloaded`, its queue is discarded, and
     * other subscribers lose nothing. `return()` ends it and settles the pending `next()`. Call
     * `next()` again only after the previous call has settled.
     */
    subscribe(): AsyncIterableIterator<T> {
      const subscriber = createQueue(options, () => {
        subscribers.delete(subscriber);
        if (subscribers.size > 0) return;
        stop?.();
        stop = undefined;
      });
      subscribers.add(subscriber);
      stop ??= options.follow?.(publish);
      return subscriber;
    },
    /** The number of subscribers. */
    get size() {
      return subscribers.size;
    },
  };
}

interface TopicQueue<T> extends AsyncIterableIterator<T> {
  push(value: T): void;
}

/**
 * Not an async generator: the `return()` of a generator waits for its pending `next()`, so that the
 * subscriber would stay in the topic until the next value.
 */
function createQueue<T>(
  { queueMax, queueBytesMax, bytesOf }: TopicOptions<T>,
  leave: () => void,
): TopicQueue<T> {
  let values: T[] = [];
  /** Bytes of the queued values. */
  let bytes = 0;
  let isOpen = true;
  /** The error for the next `next()`, which reports it once. */
  let failure: AppError | undefined;
  /** Makes a pending `next()` check the queue again. A second call takes a tenth of an event. */
  let wake = (): void => undefined;

  const end = (reason?: AppError): void => {
    isOpen = false;
    failure = reason;
    values = [];
    leave();
    wake();
  };
  return {
    push(value) {
      const { length } = values;
      bytes += bytesOf(value);
      if (length < queueMax && (length === 0 || bytes <= queueBytesMax)) {
        values.push(value);
        if (length === 0) wake();
      } else {
        const message = 'The subscriber does not keep up with what is published.';
        end(new AppError('overloaded', message));
      }
    },
    async next() {
      for (;;) {
        if (values.length > 0) {
          // The length was checked; `T` may include undefined.
          const value = values.shift() as T;
          bytes -= bytesOf(value);
          return { value, done: false };
        }
        if (!isOpen) break;
        await new Promise<void>((resolve) => void (wake = resolve));
      }
      const reason = failure;
      failure = undefined;
      if (reason !== undefined) throw reason;
      return { value: undefined, done: true };
    },
    return() {
      end();
      return Promise.resolve({ value: undefined, done: true });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
