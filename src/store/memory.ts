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
import type { Comment } from './model.ts';
import type { Articles, MemoryStoreOptions, Store } from './store.ts';
import { andThen } from '../maybe-promise.ts';

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial, bytesMax, createId, now } = options;
  const deps: TableDeps = { changes: new Changes(), take: createByteBudget(bytesMax) };
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
      remove(id, expected) {
        if (!posts.remove(id, expected)) return false;
        return andThen(comments.removeAll(id), () => true);
      },
    },
    comments: {
      ...toComments(comments),
      find: findComment,
      remove: (id) => findComment(id) !== undefined && comments.remove(id),
      add(postId, content) {
        const post = posts.find(postId);
        // Not the client's text of the id, which can keep a longer text alive.
        return post && comments.add({ id: createId(), content, createdAt: now(), postId: post.id });
      },
    },
    authors: { find: (id) => authors.get(id) },
    accounts: createAccounts(initial.accounts),
    todos: toTodos(todos, options),
    articles: createArticles(createTable(deps, 'articles', initial.articles), options.run),
    changes: () => deps.changes,
    ping: () => undefined,
    close: () => comments.close(),
  };
}

function createArticles(articles: MemoryTable<'articles'>, run: RunInTurn): Articles {
  const all = articles.list('all')();
  /** The highest value that the counter has returned (R15). */
  let counter = 0;
  return {
    all,
    find: articles.find,
    save(draft) {
      const { id, json } = draft;
      if (id !== undefined) return articles.add({ id, json });
      let next = counter + 1;
      while (articles.find(next) !== undefined) next += 1;
      const article = articles.add(withId(draft, next));
      counter = next;
      return article;
    },
    change: (id, change) =>
      run(() => {
        const article = articles.find(id);
        const after = article && change(article);
        if (after) articles.put([after]);
        return after;
      }),
    changeAll: (change) =>
      run(() => {
        const { records } = all.read({ limit: Infinity });
        const length = records.reduce((sum, { json }) => sum + json.length, 0);
        if (length > changedLengthMax) throw tooLongToChange();
        articles.put(change(records).filter((article, at) => article !== records[at]));
      }),
  };
}
