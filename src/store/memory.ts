/** The driver in memory: maps and arrays, every answer a value. It ends with the process. */

import type { Account, Article, Author, Comment, Post, Todo } from './model.ts';
import type { Accounts, Articles, Authors, Comments, Posts, Store, Todos } from './store.ts';

/** What a store holds at its start. Posts are given oldest first, comments too. */
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
  /** The local date-time of now, as records keep it. */
  readonly now: () => string;
  readonly initial: InitialData;
}

interface State extends MemoryStoreOptions {
  readonly posts: Map<string, Post>;
  readonly comments: Map<string, Comment>;
  /** A post without comments has no entry. */
  readonly commentsOfPost: Map<string, Comment[]>;
  /** Post ids, oldest first. An author without posts has no entry. */
  readonly postsOfAuthor: Map<string, Set<string>>;
  readonly authors: ReadonlyMap<string, Author>;
  /** Moved on by every write. */
  revision: number;
}

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial } = options;
  const state: State = {
    ...options,
    posts: new Map(),
    comments: new Map(),
    commentsOfPost: new Map(),
    postsOfAuthor: new Map(),
    authors: new Map(initial.authors.map((author) => [author.id, author])),
    revision: 0,
  };
  for (const post of initial.posts) keepPost(state, post);
  for (const comment of initial.comments) keepComment(state, comment);
  return {
    posts: createPosts(state),
    comments: createComments(state),
    authors: createAuthors(state),
    accounts: createAccounts(initial.accounts),
    todos: createTodos(state),
    articles: createArticles(state),
    revision: () => state.revision,
    close: () => undefined,
  };
}

function keepPost(state: State, post: Post): void {
  state.posts.set(post.id, post);
  if (post.authorId === null) return;
  const ids = state.postsOfAuthor.get(post.authorId);
  if (ids === undefined) state.postsOfAuthor.set(post.authorId, new Set([post.id]));
  else ids.add(post.id);
}

function keepComment(state: State, comment: Comment): void {
  state.comments.set(comment.id, comment);
  const comments = state.commentsOfPost.get(comment.postId);
  if (comments === undefined) state.commentsOfPost.set(comment.postId, [comment]);
  else comments.push(comment);
}

function createPosts(state: State): Posts {
  /** Made anew after a write: many reads share it. */
  let newestFirst: { readonly revision: number; readonly posts: readonly Post[] } | undefined;

  return {
    list() {
      if (newestFirst?.revision !== state.revision) {
        newestFirst = { revision: state.revision, posts: [...state.posts.values()].toReversed() };
      }
      return newestFirst.posts;
    },
    find: (id) => state.posts.get(id),
    create(draft) {
      const { title, content, authorId } = draft;
      const id = state.createId();
      const post: Post = { id, title, content, status: 'DRAFT', createdAt: state.now(), authorId };
      keepPost(state, post);
      state.revision += 1;
      return post;
    },
    update(id, { title, content }) {
      const post = state.posts.get(id);
      if (post === undefined) return false;
      state.posts.set(id, { ...post, title, content });
      state.revision += 1;
      return true;
    },
    remove(id) {
      const post = state.posts.get(id);
      if (post === undefined) return false;
      state.posts.delete(id);
      for (const comment of state.commentsOfPost.get(id) ?? []) state.comments.delete(comment.id);
      state.commentsOfPost.delete(id);
      if (post.authorId !== null) forgetPostOfAuthor(state, post.authorId, id);
      state.revision += 1;
      return true;
    },
    byAuthors: (ids) => new Map(ids.map((id) => [id, postsOfAuthor(state, id)])),
  };
}

function forgetPostOfAuthor(state: State, authorId: string, postId: string): void {
  const ids = state.postsOfAuthor.get(authorId);
  ids?.delete(postId);
  if (ids?.size === 0) state.postsOfAuthor.delete(authorId);
}

function postsOfAuthor(state: State, authorId: string): readonly Post[] {
  const ids = [...(state.postsOfAuthor.get(authorId) ?? [])].toReversed();
  return ids.flatMap((id) => state.posts.get(id) ?? []);
}

const noComments: readonly Comment[] = [];

function createComments(state: State): Comments {
  const { posts, comments, commentsOfPost } = state;
  return {
    find: (id) => comments.get(id),
    add(postId, content) {
      if (!posts.has(postId)) return undefined;
      const comment = { id: state.createId(), content, createdAt: state.now(), postId };
      keepComment(state, comment);
      state.revision += 1;
      return comment;
    },
    list: (postId) => commentsOfPost.get(postId) ?? (posts.has(postId) ? noComments : undefined),
    byPosts: (ids) => new Map(ids.map((id) => [id, commentsOfPost.get(id) ?? noComments])),
  };
}

function createAuthors({ authors }: State): Authors {
  const known = (id: string): readonly (readonly [string, Author])[] => {
    const author = authors.get(id);
    return author === undefined ? [] : [[id, author]];
  };
  return {
    find: (id) => authors.get(id),
    byIds: (ids) => new Map(ids.flatMap(known)),
  };
}

function createAccounts(accounts: readonly Account[]): Accounts {
  const byUsername = new Map(accounts.map((account) => [account.username, account]));
  return { find: (username) => byUsername.get(username) };
}

function createTodos(state: State): Todos {
  const todos = new Map(state.initial.todos.map((todo) => [todo.id, todo]));
  return {
    list: () => [...todos.values()],
    find: (id) => todos.get(id),
    create({ title, completed }) {
      const todo = { id: state.createId(), title, completed };
      todos.set(todo.id, todo);
      state.revision += 1;
      return todo;
    },
  };
}

function createArticles(state: State): Articles {
  const articles = new Map(state.initial.articles.map((article) => [article.id, article]));
  /** The highest value that the counter has given (R15). */
  let counter = 0;

  const list = (): readonly Article[] => [...articles.values()].toSorted((a, b) => a.id - b.id);
  const nextId = (): number => {
    do counter += 1;
    while (articles.has(counter));
    return counter;
  };
  const keep = (article: Article): Article => {
    articles.set(article.id, article);
    state.revision += 1;
    return article;
  };

  return {
    list,
    find: (id) => articles.get(id),
    save(draft) {
      const { id } = draft;
      return keep({ ...draft, id: typeof id === 'number' ? id : nextId() });
    },
    change(id, change) {
      const article = articles.get(id);
      return article && keep(change(article));
    },
    changeAll(change) {
      for (const article of change(list())) keep(article);
    },
  };
}
