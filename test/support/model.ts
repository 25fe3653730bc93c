/** What the service should hold, as a few plain lists: the reference of the model test. */

export interface ModelPost {
  readonly id: string;
  title: string;
  content: string;
  /** Oldest first. */
  readonly comments: { readonly id: string; readonly content: string }[];
}

export type Document = Record<string, unknown>;

export interface Model {
  /** Oldest first. */
  posts: ModelPost[];
  /** Comments that went with their posts. */
  readonly gone: string[];
  readonly todos: { readonly title: string; readonly completed: boolean }[];
  readonly articles: Map<number, Document>;
  counter: number;
}

/** The articles by id, as both the list and a patch of it see them. */
export function articlesOf(model: Model): Document[] {
  return [...model.articles].toSorted(([a], [b]) => a - b).map(([, article]) => article);
}

/** R15: the next counter value that is not taken, unless the article brings its own. */
export function saveArticle(model: Model, article: Document): number {
  let id = Number(article['id'] ?? 0);
  if (id === 0) {
    id = model.counter + 1;
    while (model.articles.has(id)) id += 1;
    model.counter = id;
  }
  model.articles.set(id, { ...article, id });
  return id;
}

/** R7. False where there is no such post. */
export function removePost(model: Model, id: string): boolean {
  const post = model.posts.find((each) => each.id === id);
  if (post === undefined) return false;
  model.posts = model.posts.filter((each) => each !== post);
  model.gone.push(...post.comments.map((comment) => comment.id));
  return true;
}

/** A merge patch of one level of objects in an object: all that the test sends. */
export function merge(target: Document, patch: Document): Document {
  const merged = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (isObject(value))
      merged[name] = merge(isObject(merged[name]) ? merged[name] : {}, value);
    else merged[name] = value;
  }
  return merged;
}

function isObject(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
