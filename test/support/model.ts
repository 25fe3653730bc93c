/** What the service should hold, as a few plain lists, and the steps that a history is made of. */

import * as fc from 'fast-check';
import { anyCharacter } from './texts.js';

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

type Endpoint = 'rest' | 'graphql';

/** Any characters, and never blank (R8). */
const text = fc.string({ unit: anyCharacter, maxLength: 12 }).map((rest) => `a${rest}`);
/** Chooses among what there is; 0 is what is not there. */
const which = fc.nat({ max: 12 });
const endpoint = fc.constantFrom<Endpoint>('rest', 'graphql');
const author = fc.record(
  { givenName: text, familyName: text },
  { requiredKeys: [], noNullPrototype: true },
);
const article = fc.record(
  { id: fc.integer({ min: 1, max: 8 }), title: text, author, content: text, tags: fc.array(text) },
  { requiredKeys: ['title'], noNullPrototype: true },
);
const nullable = fc.option(text, { nil: null });
const mergePatch = fc.record(
  {
    title: text,
    content: nullable,
    note: nullable,
    author: fc.record(
      { givenName: nullable, familyName: nullable },
      { requiredKeys: [], noNullPrototype: true },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const holds = fc.boolean();
const kind = <K extends string>(name: K): fc.Arbitrary<K> => fc.constant(name);

/** One step of a history. */
export const step = fc.oneof(
  { arbitrary: fc.record({ kind: kind('post'), endpoint, title: text, content: text }), weight: 3 },
  { arbitrary: fc.record({ kind: kind('comment'), endpoint, which, content: text }), weight: 3 },
  fc.record({ kind: kind('change'), which, title: text }),
  fc.record({ kind: kind('remove'), which }),
  fc.record({ kind: kind('todo'), title: text, completed: fc.boolean() }),
  fc.record({ kind: kind('article'), article }),
  fc.record({ kind: kind('patch'), which, note: text, holds }),
  fc.record({ kind: kind('patchAll'), title: text, holds }),
  fc.record({ kind: kind('merge'), which, patch: mergePatch }),
  fc.record({ kind: kind('refused'), which }),
);
export type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;
