/** The in-memory driver: maps and arrays; returns values, not promises. */

import { measureJson } from '../json-measure.ts';
import {
  copyDocument,
  copyText,
  createTake,
  documentBytes,
  textRecordBytes,
} from './byte-budget.ts';
import { createAccounts } from './given-accounts.ts';
import { append } from './list.ts';
import { createMemoryList, indexOfId } from './memory-list.ts';
import type { Account, Article, Author, Comment, Post, Todo } from './model.ts';
import { createVersions, VersionedMap } from './reading.ts';
import type { Articles, Comments, Posts, PostTexts, Store, Todos, Versions } from './store.ts';

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
}

interface State extends MemoryStoreOptions {
  /** Takes memory from `bytesMax`. */
  readonly take: (bytes: number) => void;
  readonly versions: Versions;
  readonly posts: Map<string, Post>;
  /** Oldest first. */
  readonly orderedPosts: Post[];
  readonly comments: Map<string, Comment>;
  /** A post without comments has no entry. */
  readonly commentsOfPost: Map<string, Comment[]>;
  /** Oldest first. An author without posts has no entry. */
  readonly postsOfAuthor: Map<string, Post[]>;
  readonly authors: ReadonlyMap<string, Author>;
}

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const { initial } = options;
  const versions = createVersions();
  const state: State = {
    ...options,
    take: createTake(options.bytesMax),
    versions,
    posts: new VersionedMap(versions, 'posts'),
    orderedPosts: [],
    comments: new VersionedMap(versions, 'comments'),
    commentsOfPost: new Map(),
    postsOfAuthor: new Map(),
    authors: new Map(initial.authors.map((author) => [author.id, author])),
  };
  for (const post of initial.posts) keepPost(state, post);
  for (const comment of initial.comments) keepComment(state, comment);
  return {
    keepsObjects: true,
    posts: createPosts(state),
    comments: createComments(state),
    authors: { find: (id) => state.authors.get(id) },
    accounts: createAccounts(initial.accounts),
    todos: createTodos(state),
    articles: createArticles(state),
    versions: () => versions,
    ping: () => undefined,
    close: () => undefined,
  };
}

function postBytes({ title, content }: Pick<Post, 'title' | 'content'>): number {
  return textRecordBytes(title, content);
}

function keepPost(state: State, post: Post): void {
  state.take(postBytes(post));
  state.posts.set(post.id, post);
  state.orderedPosts.push(post);
  if (post.authorId !== null) append(state.postsOfAuthor, post.authorId, post);
}

function keepComment(state: State, comment: Comment): void {
  state.take(textRecordBytes(comment.content));
  state.comments.set(comment.id, comment);
  append(state.commentsOfPost, comment.postId, comment);
}

function createPosts(state: State): Posts {
  return {
    all: createMemoryList(state.orderedPosts, 'newestFirst'),
    ofAuthor: (id) => createMemoryList(state.postsOfAuthor.get(id) ?? [], 'newestFirst'),
    find: (id) => state.posts.get(id),
    create(draft) {
      const { authorId } = draft;
      const texts = { title: copyText(draft.title), content: copyText(draft.content) };
      const id = state.createId();
      const post: Post = { id, ...texts, status: 'DRAFT', createdAt: state.now(), authorId };
      keepPost(state, post);
      return post;
    },
    update(id, { title, content }, expected) {
      const post = state.posts.get(id);
      if (post === undefined || !hasTexts(post, expected)) return false;
      const changed: Post = { ...post, title: copyText(title), content: copyText(content) };
      state.take(postBytes(changed) - postBytes(post));
      state.posts.set(id, changed);
      for (const posts of listsOf(state, post)) posts[indexOfId(posts, id)] = changed;
      return true;
    },
    remove(id, expected) {
      const post = state.posts.get(id);
      if (post === undefined || !hasTexts(post, expected)) return false;
      state.posts.delete(id);
      for (const posts of listsOf(state, post)) posts.splice(indexOfId(posts, id), 1);
      if (post.authorId !== null && state.postsOfAuthor.get(post.authorId)?.length === 0) {
        state.postsOfAuthor.delete(post.authorId);
      }
      state.take(-postBytes(post));
      forgetComments(state, id);
      return true;
    },
  };
}

function hasTexts(post: PostTexts, expected: PostTexts = post): boolean {
  return post.title === expected.title && post.content === expected.content;
}

/** The lists that contain the post. */
function listsOf({ orderedPosts, postsOfAuthor }: State, { authorId }: Post): readonly Post[][] {
  const ofAuthor = authorId === null ? undefined : postsOfAuthor.get(authorId);
  return ofAuthor === undefined ? [orderedPosts] : [orderedPosts, ofAuthor];
}

function forgetComments(state: State, postId: string): void {
  for (const { id, content } of state.commentsOfPost.get(postId) ?? []) {
    state.comments.delete(id);
    state.take(-textRecordBytes(content));
  }
  state.commentsOfPost.delete(postId);
}

function createComments(state: State): Comments {
  const { posts, comments, commentsOfPost } = state;
  return {
    find: (id) => comments.get(id),
    add(postId, text) {
      const post = posts.get(postId);
      if (post === undefined) return undefined;
      const [id, content] = [state.createId(), copyText(text)];
      // Not the client's text of the id, which can keep a longer text alive.
      const comment = { id, content, createdAt: state.now(), postId: post.id };
      keepComment(state, comment);
      return comment;
    },
    ofPost: (id) => createMemoryList(commentsOfPost.get(id) ?? []),
  };
}

function createTodos(state: State): Todos {
  const todos = new VersionedMap<string, Todo>(state.versions, 'todos');
  const ordered = [...state.initial.todos];
  for (const todo of ordered) todos.set(todo.id, todo);
  return {
    all: createMemoryList(ordered),
    find: (id) => todos.get(id),
    create({ title, completed }) {
      const todo = { id: state.createId(), title: copyText(title), completed };
      state.take(textRecordBytes(title));
      todos.set(todo.id, todo);
      ordered.push(todo);
      return todo;
    },
  };
}

interface Measured {
  readonly article: Article;
  readonly bytes: number;
}

function toCopy(article: Article): Measured {
  return { article: copyDocument(article), bytes: documentBytes(measureJson(article)) };
}

/** Below this size a copy saves too little, unless the client chose names like indices. */
const compactBytesMin = 16_384;

/** A patched article has parts from parsed texts, and is copied if that can save memory. */
function toCompact(article: Article): Measured {
  const measure = measureJson(article);
  const isCompact = !measure.isIndexed && measure.bytes < compactBytesMin;
  return { article: isCompact ? article : copyDocument(article), bytes: documentBytes(measure) };
}

function createArticles(state: State): Articles {
  const articles = new VersionedMap<number, Article>(state.versions, 'articles');
  const bytesOf = new Map<number, number>();
  /** The highest value that the counter has returned (R15). */
  let counter = 0;

  /** Sorted again after a write; shared by many pages. */
  let ordered: { readonly version: number; readonly list: readonly Article[] } | undefined;

  const list = (): readonly Article[] => {
    const version = state.versions.articles;
    if (ordered?.version !== version) {
      ordered = { version, list: [...articles.values()].toSorted((a, b) => a.id - b.id) };
    }
    return ordered.list;
  };
  const nextId = (): number => {
    let id = counter + 1;
    while (articles.has(id)) id += 1;
    return id;
  };
  /** Stores all of them or, if there is no room, none. */
  const keep = (changed: readonly Measured[]): void => {
    const before = changed.reduce((sum, { article }) => sum + (bytesOf.get(article.id) ?? 0), 0);
    state.take(changed.reduce((sum, { bytes }) => sum + bytes, -before));
    for (const { article, bytes } of changed) {
      bytesOf.set(article.id, bytes);
      articles.set(article.id, article);
    }
  };
  const keepOne = (changed: Measured): Article => {
    keep([changed]);
    return changed.article;
  };
  keep(state.initial.articles.map(toCopy));

  return {
    all: {
      read: (range) => createMemoryList(list()).read(range),
      exceeds: (count) => articles.size > count,
    },
    find: (id) => articles.get(id),
    save(draft) {
      const { id } = draft;
      if (typeof id === 'number') return keepOne(toCopy({ ...draft, id }));
      const article = keepOne(toCopy({ ...draft, id: nextId() }));
      counter = article.id;
      return article;
    },
    change(id, change) {
      const article = articles.get(id);
      return article && keepOne(toCompact(change(article)));
    },
    changeAll(change) {
      const changed = change(list()).filter((article) => articles.get(article.id) !== article);
      keep(changed.map(toCompact));
    },
  };
}
