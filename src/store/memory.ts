/** The in-memory driver: maps and arrays; returns values, not promises. */

import { Changes } from './changes.ts';
import type { PlacedComment } from './comments-after.ts';
import type { Moved } from './memory-lists.ts';
import { isRepeated } from './once.ts';
import {
  changedLengthMax,
  createAccounts,
  createListening,
  toComments,
  toPosts,
  toTodos,
  tooLongToChange,
  withId,
} from './shared.ts';
import { createTable, createByteBudget, type MemoryTable, type TableDeps } from './memory-table.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Article, ArticleDraft, Comment, Post } from './model.ts';
import { createMemoryRequests, type MemoryRequests } from './memory-requests.ts';
import type { Articles, Comments, MemoryStoreOptions, Store } from './store.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial, bytesMax, run } = options;
  const take = createByteBudget(bytesMax);
  const requests = createMemoryRequests(take, Date.now);
  const deps: TableDeps = { changes: new Changes(), take, requests };
  const posts = createTable(deps, 'posts', initial.posts);
  const comments = createComments(deps, {
    ...options,
    initial: initial.comments,
    findPost: posts.find,
  });
  const todos = createTable(deps, 'todos', initial.todos);
  const authors = new Map(initial.authors.map((author) => [author.id, author]));
  return {
    keepsObjects: true,
    posts: {
      ...toPosts(posts, options),
      // Its comments are looked for among all comments, however few they are.
      remove: (...change) =>
        run(() => {
          const [id] = change;
          const changed = posts.remove(...change);
          return changed === true ? andThen(comments.removeAll(id), () => true) : changed;
        }),
    },
    comments: comments.port,
    authors: { find: (id) => authors.get(id) },
    accounts: createAccounts(initial.accounts),
    todos: toTodos(todos, options),
    articles: createArticles(createTable(deps, 'articles', initial.articles), requests, options),
    requests,
    changes: () => deps.changes,
    ping: () => undefined,
    close: () => comments.close(),
  };
}

function createArticles(
  articles: MemoryTable<'articles'>,
  requests: MemoryRequests,
  { run }: { readonly run: RunInTurn },
): Articles {
  const all = articles.list('all')();
  /** All values up to this one were returned or taken, once (R15). */
  let counter = 0;
  const save = (draft: ArticleDraft): Article => {
    const { id, json } = draft;
    if (id !== undefined) return (articles.put([{ id, json }]), { id, json });
    while (articles.find(counter + 1) !== undefined) counter += 1;
    const article = withId(draft, counter + 1);
    articles.put([article]);
    counter += 1;
    return article;
  };
  return {
    all,
    find: articles.find,
    save: (draft, once) => requests.run(once, () => save(draft)),
    create: (article, once) =>
      requests.run(once, () => (articles.find(article.id) ? undefined : save(article))),
    remove: articles.remove,
    change: (id, change, once) =>
      run(() =>
        requests.run(once, () => {
          const article = articles.find(id);
          const after = article && change(article);
          if (after) articles.put([after]);
          return after;
        }),
      ),
    changeAll: (change, once) =>
      run(() => {
        const changed = requests.run(once, () => {
          const { records } = all.read({ limit: Infinity });
          const length = records.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0);
          if (length > changedLengthMax) throw tooLongToChange();
          articles.put(change(records).filter((article, at) => article !== records[at]));
          return true;
        });
        return typeof changed === 'boolean' ? undefined : changed;
      }),
  };
}

interface CommentOptions extends Pick<MemoryStoreOptions, 'createId' | 'now'> {
  readonly initial: readonly Comment[];
  readonly findPost: (id: string) => Post | undefined;
}

/** With those that wait, which have no place yet (R48). */
function createComments(deps: TableDeps, options: CommentOptions) {
  const { findPost } = options;
  const { requests } = deps;
  /** Ids are made in the order of places, but for comments that have waited. */
  const moved: Moved = new Map();
  const placeOf = (id: string): string => moved.get(id) ?? id;
  const comments = createTable({ ...deps, moved }, 'comments', options.initial);
  const pending = createTable(deps, 'pending_comments', []);
  const listening = createListening();
  const onPost =
    ({ find }: Pick<typeof comments, 'find'>) =>
    (id: string): Comment | undefined => {
      const comment = find(id);
      return comment && findPost(comment.postId) && comment;
    };
  const [find, findPending] = [onPost(comments), onPost(pending)];
  const ports = toComments(comments, pending);
  const parts = { ...options, requests, comments, pending, find, findPending, moved };

  const port: Comments = {
    ...ports,
    find,
    pending: { ...ports.pending, find: findPending },
    placeOf: (id) => find(id) && placeOf(id),
    after(place, { postId, limit }) {
      const list = postId === undefined ? comments.list('all')() : comments.list('postId')(postId);
      const { records, next } = list.read({ after: place, limit });
      const found = records.map((comment) => ({ comment, place: placeOf(comment.id) }));
      return { found, isLast: next === undefined };
    },
    watch: listening.watch,
    ...createWrites(parts, listening.tell),
  };
  return {
    port,
    /** Removes those of a post. */
    removeAll: (postId: string): MaybePromise<unknown> => {
      const [first, second] = [comments.removeAll(postId), pending.removeAll(postId)];
      return andThen(first, () => second);
    },
    close: (): void => {
      comments.close();
      pending.close();
    },
  };
}

interface Parts extends CommentOptions, Pick<TableDeps, 'requests'> {
  readonly comments: MemoryTable<'comments'>;
  readonly pending: MemoryTable<'pending_comments'>;
  readonly find: (id: string) => Comment | undefined;
  readonly findPending: (id: string) => Comment | undefined;
  readonly moved: Moved;
}

function createWrites(
  parts: Parts,
  tell: (placed: PlacedComment) => void,
): Pick<Comments, 'add' | 'approve' | 'remove'> {
  const { requests, comments, pending, find, findPending, findPost, moved, createId, now } = parts;
  return {
    add(postId, content, { once, name = null, authorId = null, isPending = false } = {}) {
      const post = findPost(postId);
      const add = () =>
        post &&
        (isPending ? pending : comments).add({
          id: createId(),
          content,
          createdAt: now(),
          postId: post.id, // not the client's text, which can keep a longer one alive
          name,
          authorId,
        });
      const added = requests.run(once, add);
      if (added && !isRepeated(added) && !isPending) {
        tell({ comment: added, place: added.id });
      }
      return added;
    },
    approve(id, { once } = {}) {
      const approved = requests.run(once, () => {
        const comment = findPending(id);
        if (comment === undefined) return find(id) && true;
        const place = createId();
        // Its memory is free before it is taken again.
        pending.remove(comment.id);
        moved.set(comment.id, place);
        comments.put([comment]);
        return { comment, place };
      });
      if (approved === undefined) return false;
      if (approved === true || isRepeated(approved)) return approved;
      tell(approved);
      return true;
    },
    remove: (ids, { once } = {}) =>
      requests.run(once, () => {
        const placed = ids.flatMap((id) => find(id) ?? []);
        const waiting = ids.flatMap((id) => findPending(id) ?? []);
        if (placed.length + waiting.length < ids.length) return false;
        const [one, second] = placed;
        // A long list is not copied for one of it.
        if (one !== undefined && second === undefined) comments.remove(one.id);
        else comments.removeMany(placed);
        pending.removeMany(waiting);
        return true;
      }),
  };
}
