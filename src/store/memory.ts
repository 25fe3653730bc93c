/** The in-memory driver: maps and arrays; returns values, not promises. */

import {
  changedLengthMax,
  createAccounts,
  createVersions,
  tooLongToChange,
  withId,
} from './drivers.ts';
import {
  copyText,
  countBelow,
  createTable,
  createTake,
  readPage,
  type TableDeps,
  textRecordBytes,
} from './memory-table.ts';
import type { Article, Comment, Post, Todo } from './model.ts';
import type { Articles, Comments, MemoryStoreOptions, Posts, Store, Todos } from './store.ts';

type Deps = TableDeps & MemoryStoreOptions;
type Table<T extends { readonly id: string }> = ReturnType<typeof createTable<T>>;

/** The name of the list of all records of a table; others are ids, or a status. */
const everyOne = '';

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial, bytesMax } = options;
  const versions = createVersions();
  const deps: Deps = { ...options, versions, take: createTake(bytesMax) };
  const posts = createTable<Post>(deps, {
    area: 'posts',
    initial: initial.posts,
    textsOf: ({ title, content }) => [title, content],
    listsOf: ({ status, authorId }) =>
      authorId === null ? [everyOne, status] : [everyOne, status, authorId],
  });
  const comments = createTable<Comment>(deps, {
    area: 'comments',
    initial: initial.comments,
    textsOf: ({ content }) => [content],
    listsOf: ({ postId }) => [postId],
  });
  const authors = new Map(initial.authors.map((author) => [author.id, author]));
  return {
    keepsObjects: true,
    posts: createPosts(deps, posts, comments),
    comments: createComments(deps, posts, comments),
    authors: { find: (id) => authors.get(id) },
    accounts: createAccounts(initial.accounts),
    todos: createTodos(deps),
    articles: createArticles(deps),
    versions: () => versions,
    ping: () => undefined,
    close: () => undefined,
  };
}

function createPosts({ createId, now }: Deps, posts: Table<Post>, comments: Table<Comment>): Posts {
  return {
    ...posts,
    all: posts.list(everyOne, 'newestFirst'),
    ofAuthor: (id) => posts.list(id, 'newestFirst'),
    ofStatus: (status) => posts.list(status, 'newestFirst'),
    create({ title, content, authorId }) {
      const texts = { title: copyText(title), content: copyText(content) };
      return posts.add({ id: createId(), ...texts, status: 'DRAFT', createdAt: now(), authorId });
    },
    remove(id, expected) {
      if (!posts.remove(id, expected)) return false;
      comments.removeAll(id);
      return true;
    },
  };
}

function createComments(
  { createId, now }: Deps,
  posts: Table<Post>,
  comments: Table<Comment>,
): Comments {
  return {
    ...comments,
    ofPost: (id) => comments.list(id, 'oldestFirst'),
    add(postId, text) {
      const post = posts.find(postId);
      if (post === undefined) return undefined;
      const [id, content] = [createId(), copyText(text)];
      // Not the client's text of the id, which can keep a longer text alive.
      return comments.add({ id, content, createdAt: now(), postId: post.id });
    },
  };
}

function createTodos(deps: Deps): Todos {
  const todos = createTable<Todo>(deps, {
    area: 'todos',
    initial: deps.initial.todos,
    textsOf: ({ title }) => [title],
    listsOf: () => [everyOne],
  });
  return {
    ...todos,
    all: todos.list(everyOne, 'oldestFirst'),
    create: ({ title, completed }) =>
      todos.add({ id: deps.createId(), title: copyText(title), completed }),
  };
}

function createArticles({ initial, take, versions }: Deps): Articles {
  /** Ordered by id. */
  const articles: Article[] = [];
  /** The characters of all texts. */
  let length = 0;
  /** The highest value that the counter has returned (R15). */
  let counter = 0;

  const find = (id: number): Article | undefined => {
    const article = articles[countBelow(articles, id)];
    return article?.id === id ? article : undefined;
  };
  const nextId = (): number => {
    let id = counter + 1;
    for (let at = countBelow(articles, id); articles[at]?.id === id; at += 1) id += 1;
    return id;
  };
  /** Stores all of them or, if there is no room, none. */
  const save = (changed: readonly Article[]): void => {
    let [bytes, growth] = [0, 0];
    for (const { id, json } of changed) {
      const before = find(id)?.json;
      bytes += textRecordBytes(json) - (before === undefined ? 0 : textRecordBytes(before));
      growth += json.length - (before?.length ?? 0);
    }
    take(bytes);
    length += growth;
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
  save(initial.articles);

  return {
    all: { read: (range) => readPage(articles, 'oldestFirst', range) },
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
      if (length > changedLengthMax) throw tooLongToChange();
      save(change(articles).filter((article, at) => article !== articles[at]));
    },
  };
}
