/**
 * The rules of articles: open documents with typed known members (R14), and what a patch may do.
 */

import { AppError, invalidBody, type FieldError } from '../errors.ts';
import { isObject, jsonValuesMax } from '../http/json.ts';
import { parseText } from '../http/json-escaped-names.ts';
import type { Article, ArticleDraft, Json } from '../store/model.ts';
import { countValues, toDocumentText } from './json-value.ts';
import { parseLocalDateTime } from './local-date-time.ts';
import type { Patch } from './patch.ts';

/** Faults listed in one response. */
const faultsMax = 20;

/** The values of all articles that one patch may use: reading them takes some 0.1 s at worst. */
const patchedValuesMax = 2 * jsonValuesMax;

/**
 * Checks an article to be stored, with or without an id. Throws `invalid_body` with a pointer to
 * each fault, and `content_too_large` beyond `bytesMax`.
 */
export function decodeArticleDraft(body: unknown, bytesMax: number): ArticleDraft {
  const value = withoutNulls(body as Json); // validated by `http/json.ts`
  checkAll([{ value, at: '' }]);
  const { id } = value as { readonly id?: number }; // checked
  return { id, json: toDocumentText(value, bytesMax) };
}

/** Removes null members that are optional and have a type: null of them counts as absent (R8). */
function withoutNulls(value: Json): Json {
  removeNulls(value, ['id', 'author', 'content', 'tags', 'publishedAt']);
  if (isObject(value)) removeNulls(value['author'], ['givenName', 'familyName']);
  return value;
}

function removeNulls(value: Json | undefined, names: readonly string[]): void {
  if (!isObject(value)) return;
  for (const name of names) if (value[name] === null) Reflect.deleteProperty(value, name);
}

/** Applies a patch, which must leave an article with the same id (R16). */
export function patchArticle({ id, json }: Article, patch: Patch, bytesMax: number): Article {
  const value = patch.apply(parseText(json) as Json);
  checkAll([{ value, at: '', id }]);
  return { id, json: toDocumentText(value, bytesMax) };
}

/**
 * Applies a patch to the array of all articles: none may be added, removed or moved (R16).
 * Returns the same object for an article that the patch does not use; it is not even parsed.
 */
export function patchArticles(articles: readonly Article[], patch: Patch, bytesMax: number) {
  const used = patch.itemsUsed();
  const isUsed = (index: number): boolean => used?.has(index) ?? true;
  let values = 0;
  const documents = articles.map(({ json }, index) => {
    if (!isUsed(index)) return null;
    const document = parseText(json) as Json;
    values += countValues(document);
    if (values <= patchedValuesMax) return document;
    throw new AppError('content_too_large', 'The articles to be patched have too many values.');
  });
  const after = patch.apply(documents);
  if (after === null || !Array.isArray(after) || after.length !== articles.length) {
    throw invalidBody([{ pointer: '', message: 'must hold the same articles' }]);
  }
  const patched = after.map((value, index) => ({
    value,
    at: `/${index}`,
    id: articles[index]?.id,
  }));
  checkAll(patched.filter((_, index) => isUsed(index)));
  return articles.map((article, index) => {
    if (!isUsed(index)) return article;
    const json = toDocumentText(after[index] as Json, bytesMax);
    return json === article.json ? article : { id: article.id, json };
  });
}

interface Checked {
  readonly value: Json;
  /** JSON Pointer to the value. */
  readonly at: string;
  /** The id of the article before the patch. */
  readonly id?: number | undefined;
}

/** R14: the members that the specification names have its types. Only the title is required. */
function checkAll(articles: readonly Checked[]): void {
  const faults: FieldError[] = [];
  for (const article of articles) checkArticle(article, faults);
  if (faults.length > 0) throw invalidBody(faults);
}

function checkArticle({ value, at, id: before }: Checked, faults: FieldError[]): void {
  if (!isObject(value)) {
    fault(faults, at, 'must be an object');
    return;
  }
  const { id, title, author, content, tags, publishedAt } = value;
  if (before !== undefined && id !== before) {
    fault(faults, `${at}/id`, 'must stay as it is');
    return;
  }
  if (id !== undefined && !(Number.isSafeInteger(id) && (id as number) > 0)) {
    fault(faults, `${at}/id`, 'must be a positive whole number');
  }
  if (typeof title !== 'string' || title.trim() === '') {
    fault(faults, `${at}/title`, 'must be a text that is not empty');
  }
  if (isObject(author)) {
    checkText(author['givenName'], `${at}/author/givenName`, faults);
    checkText(author['familyName'], `${at}/author/familyName`, faults);
  } else if (author !== undefined) fault(faults, `${at}/author`, 'must be an object');
  checkText(content, `${at}/content`, faults);
  if (tags !== undefined && !Array.isArray(tags)) fault(faults, `${at}/tags`, 'must be an array');
  else if (tags !== undefined) {
    for (let index = 0; index < tags.length && faults.length < faultsMax; index += 1) {
      checkText(tags[index], `${at}/tags/${index}`, faults);
    }
  }
  // Choice: a date-time is checked, but stored as it was sent. An article is an open document, and
  // a client reads back what it wrote (R14, R17).
  const isDate = typeof publishedAt === 'string' && parseLocalDateTime(publishedAt) !== undefined;
  if (publishedAt !== undefined && !isDate) {
    fault(faults, `${at}/publishedAt`, 'must be a local date-time');
  }
}

function checkText(value: Json | undefined, at: string, faults: FieldError[]): void {
  if (value !== undefined && typeof value !== 'string') fault(faults, at, 'must be a string');
}

function fault(faults: FieldError[], pointer: string, message: string): void {
  if (faults.length < faultsMax) faults.push({ pointer, message });
}
