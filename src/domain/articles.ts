/**
 * The rules of articles: open documents with typed known members (R14), and what a patch may do.
 */

import { AppError, invalidBody, type FieldError } from '../errors.ts';
import { jsonValuesMax } from '../json-limits.ts';
import type { Article, ArticleDraft, Json, JsonObject } from '../store/model.ts';
import { countValues, isJsonArray, isJsonObject, toDocumentText } from './json-value.ts';
import { parseLocalDateTime } from './local-date-time.ts';
import type { Patch } from './patch.ts';
import { isBlank } from './text.ts';

/** Faults listed in one response. */
const faultsMax = 20;

/** The values of all articles that one patch may use: reading them takes some 0.1 s at worst. */
const patchedValuesMax = 2 * jsonValuesMax;

/**
 * Checks an article to be stored, with or without an id. Throws `invalid_body` with a pointer to
 * each fault, and `content_too_large` beyond `bytesMax`.
 */
export function decodeArticleDraft(body: unknown, bytesMax: number): ArticleDraft {
  const value = body as Json; // validated by `http/json.ts`
  checkAll([{ value, at: '' }]);
  return { id: idOf(value), json: toDocumentText(value, bytesMax) };
}

/** Applies a patch, which must leave an article with the same id (R16). */
export function patchArticle({ id, json }: Article, patch: Patch, bytesMax: number): Article {
  const value = patch.apply(JSON.parse(json) as Json);
  checkAll([{ value, at: '', id }]);
  return { id, json: toDocumentText(value, bytesMax) };
}

/**
 * The same for a patch of the array of all articles: none may be added, removed or moved (R16).
 * Returns the same object for an article that the patch does not use; it is not even parsed.
 */
export function patchArticles(
  articles: readonly Article[],
  patch: Patch,
  bytesMax: number,
): readonly Article[] {
  const isUsed = (index: number): boolean => patch.items?.has(index) ?? true;
  let values = 0;
  const documents = articles.map(({ json }, index) => {
    if (!isUsed(index)) return null;
    const document = JSON.parse(json) as Json;
    values += countValues(document);
    if (values <= patchedValuesMax) return document;
    throw new AppError('content_too_large', 'The articles to be patched have too many values.');
  });
  const after = patch.apply(documents);
  if (after === null || !isJsonArray(after) || after.length !== articles.length) {
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

function checkAll(articles: readonly Checked[]): void {
  const faults: FieldError[] = [];
  for (const article of articles) checkArticle(article, faults);
  if (faults.length > 0) throw invalidBody(faults);
}

/** The id of a checked article. */
function idOf(article: Json): number | undefined {
  return (article as JsonObject)['id'] as number | undefined;
}

/** R14: the members that the specification names have its types. Only the title is required. */
function checkArticle({ value, at, id: before }: Checked, faults: FieldError[]): void {
  if (!isJsonObject(value)) {
    fault(faults, at, 'must be an object');
    return;
  }
  if (before !== undefined && value['id'] !== before) {
    fault(faults, `${at}/id`, 'must stay as it is');
    return;
  }
  const { id, title, author, content, tags, publishedAt } = value;
  if (id !== undefined && !isArticleId(id)) {
    fault(faults, `${at}/id`, 'must be a positive whole number');
  }
  if (typeof title !== 'string' || isBlank(title)) {
    fault(faults, `${at}/title`, 'must be a text that is not empty');
  }
  if (author !== undefined) checkAuthor(author, `${at}/author`, faults);
  checkText(content, `${at}/content`, faults);
  if (tags !== undefined) checkTags(tags, `${at}/tags`, faults);
  // Choice: a date-time is checked, but stored as it was sent. An article is an open document, and
  // a client reads back what it wrote (R14, R17).
  if (publishedAt !== undefined && !isLocalDateTime(publishedAt)) {
    fault(faults, `${at}/publishedAt`, 'must be a local date-time');
  }
}

function checkAuthor(author: Json, at: string, faults: FieldError[]): void {
  if (!isJsonObject(author)) {
    fault(faults, at, 'must be an object');
    return;
  }
  checkText(author['givenName'], `${at}/givenName`, faults);
  checkText(author['familyName'], `${at}/familyName`, faults);
}

function checkTags(tags: Json, at: string, faults: FieldError[]): void {
  if (!isJsonArray(tags)) {
    fault(faults, at, 'must be an array');
    return;
  }
  for (let index = 0; index < tags.length && faults.length < faultsMax; index += 1) {
    checkText(tags[index], `${at}/${index}`, faults);
  }
}

function checkText(value: Json | undefined, at: string, faults: FieldError[]): void {
  if (value !== undefined && typeof value !== 'string') fault(faults, at, 'must be a string');
}

function isArticleId(value: Json): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isLocalDateTime(value: Json): boolean {
  return typeof value === 'string' && parseLocalDateTime(value) !== undefined;
}

function fault(faults: FieldError[], pointer: string, message: string): void {
  if (faults.length < faultsMax) faults.push({ pointer, message });
}
