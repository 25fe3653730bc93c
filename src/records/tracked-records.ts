/**
 * Records as one response reads them: those that exist for its reader (`domain/readers.ts`).
 * Versions are noted before a read; a response is reused while they are the same. A version is the
 * count of changes in a slot (`store/changes.ts`): a record has a slot by its id, the list of an
 * owner by the owner's id, any other list by its area. A response can be made only from what is
 * noted, because its handler or resolver gets nothing else.
 */

import {
  type CommentOfPost,
  isModerator,
  mayRead,
  moderates,
  type Reader,
  type Records,
  type SeenComment,
  toReadable,
} from '../domain/readers.ts';
import { allOf, andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Area, Changes } from '../store/changes.ts';
import type { Comment, CommentStatus, Post, PostStatus } from '../store/model.ts';
import type { List, Store } from '../store/store.ts';
import { joinLists, selectShown } from './comment-lists.ts';

/** Limit for the slots of a response: what it reads beyond them is noted by area. */
const slotsMax = 128;

/** Posts whose comments are on one page: their texts can be long. */
const postsAtOnce = 50;
const nothing: List<never> = { read: () => ({ records: [], next: undefined }) };

interface TrackedOptions {
  /** Required, so that nobody forgets it: undefined reads everything. */
  readonly reader: Reader | undefined;
  /** Identifies this process. */
  readonly run?: string;
}

export class TrackedRecords implements Records {
  readonly reader: Reader | undefined;
  /** True if another reader may get another response: of what is published, all get the same. */
  isPersonal = false;
  readonly #store: Store;
  readonly #run: string;
  readonly #changes: Changes;
  /** The slots that were noted. An array: it is read far more often than it grows. */
  readonly slots: number[] = [];
  /** The sum of the counts, each as it was when its slot was noted. */
  #sum: number;

  constructor(store: Store, { reader, run = '' }: TrackedOptions) {
    this.reader = reader;
    this.#store = store;
    this.#run = run;
    this.#changes = store.changes();
    this.#sum = this.#changes.sumOf([]);
  }

  get posts(): Records['posts'] {
    return {
      list: (filter) => {
        const { author, status } = toReadable(filter, this.reader);
        this.#noteStatus(status);
        const { posts } = this.note('posts', author);
        if (author !== undefined) return this.#placed(posts.ofAuthor(author, status));
        return status === undefined ? posts.all : posts.ofStatus(status);
      },
      find: (id) => {
        const found = this.note('posts', id).posts.find(id);
        return this.reader === undefined ? found : andThen(found, (post) => this.#show(post));
      },
    };
  }
  get comments(): Records['comments'] {
    return {
      find: (id) => {
        if (!isModerator(this.reader)) return this.#findPublished(id);
        // First among those that wait: it may be approved meanwhile.
        const waiting = this.note('pending_comments', id).comments.pending.find(id);
        return andThen(waiting, (comment) =>
          comment === undefined ? this.#findPublished(id) : this.#find(comment, 'PENDING'),
        );
      },
      ofPost: (post) => {
        const { comments } = this.note('comments', post.id);
        const published = comments.ofPost(post.id);
        if (!moderates(this.reader, post)) return published;
        this.note('pending_comments', post.id);
        const withStatus = (list: List<Comment>, status: CommentStatus): List<SeenComment> =>
          selectShown(list, (page) => page.map((comment) => ({ ...comment, status })));
        return joinLists(
          withStatus(published, 'PUBLISHED'),
          withStatus(comments.pending.ofPost(post.id), 'PENDING'),
          this.#isPending,
        );
      },
      all: (status) => {
        const { comments } = this.#store;
        const published = this.#withPosts(this.#all('comments', comments.all), 'PUBLISHED');
        if (status === 'PUBLISHED') return published;
        if (!isModerator(this.reader)) return status === undefined ? published : nothing;
        const ofPending = this.#all('pending_comments', comments.pending.all);
        const pending = this.#withPosts(ofPending, 'PENDING');
        if (status === 'PENDING') return pending;
        return joinLists(pending, published, (id) =>
          andThen(this.#isPending(id), (isThere) => !isThere),
        );
      },
    };
  }
  get authors(): Records['authors'] {
    return { find: (id) => this.note('authors', id).authors.find(id) };
  }
  get todos(): Records['todos'] {
    return {
      all: this.#all('todos', this.#store.todos.all),
      find: (id) => this.note('todos', id).todos.find(id),
    };
  }
  get articles(): Records['articles'] {
    return {
      all: this.#all('articles', this.#store.articles.all),
      find: (id) => this.note('articles', id).articles.find(id),
    };
  }

  /** True if nothing that was read has changed since. */
  isCurrent(): boolean {
    return this.#store.changes().sumOf(this.slots) === this.#sum;
  }

  /**
   * Identifies the state that was read, among reads of the same slots. Undefined if other processes
   * may have changed the state, or if the version would tell of changes that do not exist for the
   * reader.
   */
  get version(): string | undefined {
    const isKnown = this.#store.askState === undefined && this.reader === undefined;
    return isKnown ? `${this.#run}-${this.#sum}` : undefined;
  }

  #findPublished(id: string): MaybePromise<SeenComment | undefined> {
    const found = this.note('comments', id).comments.find(id);
    return andThen(found, (comment) => comment && this.#find(comment, 'PUBLISHED'));
  }

  /** The comment as it exists for the reader, if it does. */
  #find(comment: Comment, status: CommentStatus): MaybePromise<SeenComment | undefined> {
    // The change that removes its post with it counts at the post's list of comments.
    this.note('comments', comment.postId);
    if (this.reader === undefined) return comment;
    const found = this.posts.find(comment.postId);
    return andThen(found, (post) => post && this.#see(comment, post, status));
  }

  #see(comment: Comment, post: Post, status: CommentStatus): SeenComment | undefined {
    if (moderates(this.reader, post)) return { ...comment, status };
    return status === 'PENDING' ? undefined : comment;
  }

  readonly #isPending = (id: string): MaybePromise<boolean> =>
    andThen(this.#store.comments.pending.find(id), (found) => found !== undefined);

  /** Those that exist for the reader, with what their posts are known by. */
  #withPosts(list: List<Comment>, status: CommentStatus): List<CommentOfPost> {
    const select = (comments: readonly Comment[]): MaybePromise<CommentOfPost[]> => {
      // Most comments of a page are often on one post.
      const ids = [...new Set(comments.map(({ postId }) => postId))];
      return andThen(allOf(ids.map((id) => this.posts.find(id))), (found) => {
        const posts = new Map(found.map((post) => [post?.id, post]));
        return comments.flatMap((comment) => {
          const post = posts.get(comment.postId);
          const seen = post && this.#see(comment, post, status);
          return post && seen ? { ...seen, post: { id: post.id, title: post.title } } : [];
        });
      });
    };
    return selectShown(list, select, postsAtOnce);
  }

  #noteStatus(status: PostStatus | undefined): void {
    this.isPersonal ||= this.reader?.hasOwners === true && status !== 'PUBLISHED';
  }

  /** Where a page begins changes when the post before it, of any author, is published (R49). */
  #placed(list: List<Post>): List<Post> {
    return {
      read: (range) => {
        if (range?.after !== undefined) this.note('posts', range.after);
        return list.read(range);
      },
    };
  }

  #show(post: Post | undefined): Post | undefined {
    if (post !== undefined) this.#noteStatus(post.status);
    return mayRead(this.reader, post) ? post : undefined;
  }

  #all<T>(area: Area, list: List<T>): List<T> {
    return {
      read: (range) => {
        this.note(area);
        return list.read(range);
      },
    };
  }

  /** Call it before the read. `id`: of a record, or of the owner of a list. */
  note(area: Area, id?: string | number): Store {
    const ofArea = this.#changes.slotOf(area);
    const isSmall = id !== undefined && this.slots.length < slotsMax;
    const slot = isSmall ? this.#changes.slotOf(area, id) : ofArea;
    // The count of an area includes those of its records.
    if (this.slots.includes(slot) || this.slots.includes(ofArea)) return this.#store;
    this.slots.push(slot);
    this.#sum += this.#changes.at(slot);
    return this.#store;
  }
}
