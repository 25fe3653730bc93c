/** The in-memory driver: maps and arrays; returns values, not promises. */

import {
  changedLengthMax,
  createAccounts,
  createComments,
  createPosts,
  createTodos,
  createVersions,
  kinds,
  tooLongToChange,
  withId,
} from './drivers.ts';
import {
  bytesOf,
  copyText,
  countBelow,
  createTable,
  createTake,
  readPage,
  type TableDeps,
} from './memory-table.ts';
import type { Article } from './model.ts';
import type { Articles, MemoryStoreOptions, Store } from './store.ts';

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial, bytesMax, createId, now } = options;
  const deps: TableDeps = { versions: createVersions(), take: createTake(bytesMax) };
  const posts = createTable(deps, 'posts', initial.posts);
  const comments = createTable(deps, 'comments', initial.comments);
  const todos = createTable(deps, 'todos', initial.todos);
  const authors = new Map(initial.authors.map((author) => [author.id, author]));
  return {
    keepsObjects: true,
    posts: {
      ...createPosts(posts, options),
      remove(id, expected) {
        if (!posts.remove(id, expected)) return false;
        comments.removeAll(id);
        return true;
      },
    },
    comments: {
      ...createComments(comments),
      add(postId, content) {
        const post = posts.find(postId);
        // Not the client's text of the id, which can keep a longer text alive.
        return post && comments.add({ id: createId(), content, createdAt: now(), postId: post.id });
      },
    },
    authors: { find: (id) => authors.get(id) },
    accounts: createAccounts(initial.accounts),
    todos: createTodos(todos, options),
    articles: createArticles(deps, initial.articles),
    versions: () => deps.versions,
    ping: () => undefined,
    close: () => undefined,
  };
}

function createArticles({ take, versions }: TableDeps, initial: readonly Article[]): Articles {
  /** Ordered by id. */
  const articles: Article[] = [];
  /** The highest value that the counter has returned (R15). */
  let counter = 0;

  const find = (id: number): Article | undefined => {
    const article = articles[countBelow(articles, id)];
    return article?.id === id ? article : undefined;
  };
  const nextId = (): number => {
    let id = counter + 1;
    while (find(id) !== undefined) id += 1;
    return id;
  };
  const growth = (article: Article): number =>
    bytesOf(article, kinds.articles) - bytesOf(find(article.id), kinds.articles);
  /** Stores all of them or, if there is no room, none. */
  const save = (changed: readonly Article[]): void => {
    take(changed.reduce((sum, article) => sum + growth(article), 0));
    for (const article of changed) {
      const at = countBelow(articles, article.id);
      articles.splice(at, articles[at]?.id === article.id ? 1 : 0, article);
    }
    versions.articles += changed.length;
  };
  const saveOne = (article: Article): Article => {
    save([article]);
    return article;
  };
  save(initial);

  return {
    all: { read: (range) => readPage(articles, 'ASC', range) },
    find,
    save(draft) {
      const { id, json } = draft;
      if (id !== undefined) return saveOne({ id, json });
      const numbered = withId(draft, nextId());
      const article = saveOne({ ...numbered, json: copyText(numbered.json) });
      counter = article.id;
      return article;
    },
    change(id, change) {
      const article = find(id);
      return article && saveOne(change(article));
    },
    changeAll(change) {
      const length = articles.reduce((sum, { json }) => sum + json.length, 0);
      if (length > changedLengthMax) throw tooLongToChange();
      save(change(articles).filter((article, at) => article !== articles[at]));
    },
  };
}
