/** The in-memory driver: maps and arrays; returns values, not promises. */

import { Changes } from './changes.ts';
import {
  changedLengthMax,
  createAccounts,
  toComments,
  toPosts,
  toTodos,
  tooLongToChange,
  withId,
} from './shared.ts';
import { createTable, createByteBudget, type MemoryTable, type TableDeps } from './memory-table.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Article, ArticleDraft, Comment } from './model.ts';
import { createMemoryRequests, type MemoryRequests } from './memory-requests.ts';
import type { Articles, MemoryStoreOptions, Store } from './store.ts';
import { andThen } from '../maybe-promise.ts';

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial, bytesMax, createId, now, run } = options;
  const take = createByteBudget(bytesMax);
  const requests = createMemoryRequests(take, Date.now);
  const deps: TableDeps = { changes: new Changes(), take, requests };
  const posts = createTable(deps, 'posts', initial.posts);
  const comments = createTable(deps, 'comments', initial.comments);
  const todos = createTable(deps, 'todos', initial.todos);
  const authors = new Map(initial.authors.map((author) => [author.id, author]));
  const findComment = (id: string): Comment | undefined => {
    const comment = comments.find(id);
    return comment && posts.find(comment.postId) && comment;
  };
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
    comments: {
      ...toComments(comments),
      find: findComment,
      remove: (id, { once } = {}) =>
        requests.run(once, () => findComment(id) !== undefined && comments.remove(id)),
      placeOf: (id) => findComment(id) && { at: id },
      after(place, { postId, limit, onCut }) {
        onCut();
        const list =
          postId === undefined ? comments.list('all')() : comments.list('postId')(postId);
        const { records, next } = list.read({ after: place.at, limit });
        const found = records.map((comment) => ({ comment, place: { at: comment.id } }));
        return { found, isLast: next === undefined };
      },
      add(postId, content, once) {
        const post = posts.find(postId);
        // Not the client's text of the id, which can keep a longer text alive.
        const add = () =>
          post && comments.add({ id: createId(), content, createdAt: now(), postId: post.id });
        return requests.run(once, add);
      },
    },
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
  /** All values up to this one were returned (R15) or are taken: no article is ever removed. */
  let counter = 0;
  const save = (draft: ArticleDraft): Article => {
    const { id, json } = draft;
    if (id !== undefined) return (articles.put([{ id, json }]), { id, json });
    while (articles.find(counter + 1) !== undefined) counter += 1;
    const article = withId(draft, counter + 1);
    articles.put([article]);
    return article;
  };
  return {
    all,
    find: articles.find,
    save: (draft, once) => requests.run(once, () => save(draft)),
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
          const length = records.reduce((sum, { json }) => sum + json.length, 0);
          if (length > changedLengthMax) throw tooLongToChange();
          articles.put(change(records).filter((article, at) => article !== records[at]));
          return true;
        });
        return typeof changed === 'boolean' ? undefined : changed;
      }),
  };
}
