/** The in-memory driver: maps and arrays; returns values, not promises. */

import { createAccounts } from './accounts.ts';
import { changedLengthMax, tooLongToChange, withId } from './articles.ts';
import { copyText, copyTexts, createTake, textRecordBytes } from './byte-budget.ts';
import { append } from './list.ts';
import { countBelow, createMemoryList, indexOfId } from './memory-list.ts';
import type { Account, Article, Author, Comment, Post, PostStatus, Todo } from './model.ts';
import { createVersions, VersionedMap } from './versions.ts';
import type { Articles, Comments, Posts, Store, Todos, Versions } from './store.ts';

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
  /** Oldest first. */
  readonly postsOfStatus: Readonly<Record<PostStatus, Post[]>>;
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
    postsOfStatus: { DRAFT: [], PENDING_MODERATION: [], PUBLISHED: [] },
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
  state.postsOfStatus[post.status].push(post);
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
    ofStatus: (status) => createMemoryList(state.postsOfStatus[status], 'newestFirst'),
    find: (id) => state.posts.get(id),
    create(draft) {
      const { title, content, authorId } = draft;
      const texts = { title: copyText(title), content: copyText(content) };
      const id = state.createId();
      const post: Post = { id, ...texts, status: 'DRAFT', createdAt: state.now(), authorId };
      keepPost(state, post);
      return post;
    },
    update(id, change, expected) {
      const post = state.posts.get(id);
      if (post === undefined || !hasMembers(post, expected)) return false;
      const changed = { ...post, ...copyTexts(change) };
      state.take(postBytes(changed) - postBytes(post));
      state.posts.set(id, changed);
      moveToStatus(state, post, changed.status);
      for (const posts of listsOf(state, changed)) posts[indexOfId(posts, id)] = changed;
      return true;
    },
    remove(id, expected) {
      const post = state.posts.get(id);
      if (post === undefined || !hasMembers(post, expected)) return false;
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

/** True if the record has the members of `expected`. */
function hasMembers<T extends object>(record: T, expected: Partial<T> = {}): boolean {
  return Object.entries(expected).every(([name, value]) => record[name as keyof T] === value);
}

/** The lists that contain the post. */
function listsOf(state: State, { authorId, status }: Post): readonly Post[][] {
  const lists = [state.orderedPosts, state.postsOfStatus[status]];
  const ofAuthor = authorId === null ? undefined : state.postsOfAuthor.get(authorId);
  return ofAuthor === undefined ? lists : [...lists, ofAuthor];
}

function moveToStatus({ postsOfStatus }: State, post: Post, status: PostStatus): void {
  if (status === post.status) return;
  const [from, to] = [postsOfStatus[post.status], postsOfStatus[status]];
  from.splice(indexOfId(from, post.id), 1);
  to.splice(countBelow(to, post.id), 0, post);
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
    remove(id) {
      const comment = comments.get(id);
      if (comment === undefined) return false;
      comments.delete(id);
      const ofPost = commentsOfPost.get(comment.postId) ?? [];
      ofPost.splice(indexOfId(ofPost, id), 1);
      if (ofPost.length === 0) commentsOfPost.delete(comment.postId);
      state.take(-textRecordBytes(comment.content));
      return true;
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
    update(id, change, expected) {
      const todo = todos.get(id);
      if (todo === undefined || !hasMembers(todo, expected)) return false;
      const changed = { ...todo, ...copyTexts(change) };
      state.take(textRecordBytes(changed.title) - textRecordBytes(todo.title));
      todos.set(todo.id, changed);
      ordered[indexOfId(ordered, id)] = changed;
      return true;
    },
    remove(id, expected) {
      const todo = todos.get(id);
      if (todo === undefined || !hasMembers(todo, expected)) return false;
      todos.delete(id);
      ordered.splice(indexOfId(ordered, id), 1);
      state.take(-textRecordBytes(todo.title));
      return true;
    },
  };
}

function createArticles(state: State): Articles {
  const articles = new VersionedMap<number, Article>(state.versions, 'articles');
  /** The characters of all texts. */
  let length = 0;
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
  const save = (changed: readonly Article[]): void => {
    let [bytes, growth] = [0, 0];
    for (const { id, json } of changed) {
      const before = articles.get(id)?.json;
      bytes += textRecordBytes(json) - (before === undefined ? 0 : textRecordBytes(before));
      growth += json.length - (before?.length ?? 0);
    }
    state.take(bytes);
    length += growth;
    for (const article of changed) articles.set(article.id, article);
  };
  const saveOne = (article: Article): Article => {
    save([article]);
    return article;
  };
  save(state.initial.articles);

  return {
    all: { read: (range) => createMemoryList(list()).read(range) },
    find: (id) => articles.get(id),
    save(draft) {
      const { id, json } = draft;
      if (id !== undefined) return saveOne({ id, json });
      const numbered = withId(draft, nextId());
      const article = saveOne({ ...numbered, json: copyText(numbered.json) });
      counter = article.id;
      return article;
    },
    change(id, change) {
      const article = articles.get(id);
      return article && saveOne(change(article));
    },
    changeAll(change) {
      if (length > changedLengthMax) throw tooLongToChange();
      save(change(list()).filter((article) => articles.get(article.id) !== article));
    },
  };
}
