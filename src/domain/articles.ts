/**
 * The rules of articles: open documents with typed known members (R14), and what a patch may do.
 */

import { invalidBody, type FieldError } from '../errors.ts';
import type { Article, ArticleDraft, Json } from '../store/model.ts';
import { checkDocument, isJsonArray, isJsonObject } from './json-value.ts';
import { parseLocalDateTime } from './local-date-time.ts';
import { isBlank } from './text.ts';

/** Faults listed in one response. */
const faultsMax = 20;

/**
 * Checks an article to be stored, with or without an id. Throws `invalid_body` with a pointer to
 * each fault, and `content_too_large` beyond `bytesMax`.
 */
export function decodeArticleDraft(body: unknown, bytesMax: number): ArticleDraft {
  const value = body as Json; // validated by `http/json.ts`
  checkAll([{ value, at: '' }], bytesMax);
  return value as ArticleDraft; // it was checked
}

/** Checks what a patch made of `before`: it must be an article with the same id (R16). */
export function toPatchedArticle(before: Article, after: Json, bytesMax: number): Article {
  checkAll([{ value: after, at: '', before }], bytesMax);
  return after as Article; // it was checked
}

/**
 * The same for a patch of all articles: none may be added, removed or moved (R16). An article that
 * the patch did not change is the same object, and is not checked again.
 */
export function toPatchedArticles(
  before: readonly Article[],
  after: Json,
  bytesMax: number,
): readonly Article[] {
  if (after === null || !isJsonArray(after) || after.length !== before.length) {
    throw invalidBody([{ pointer: '', message: 'must hold the same articles' }]);
  }
  const patched = after
    .map((value, index) => ({ value, at: `/${index}`, before: before[index] as Article }))
    .filter((article) => article.value !== article.before);
  checkAll(patched, bytesMax);
  return after as readonly Article[]; // each was checked, now or when it was stored
}

interface Checked {
  readonly value: Json;
  /** JSON Pointer to the value. */
  readonly at: string;
  /** The article before the patch. */
  readonly before?: Article;
}

function checkAll(articles: readonly Checked[], bytesMax: number): void {
  const faults: FieldError[] = [];
  for (const article of articles) checkArticle(article, faults);
  if (faults.length > 0) throw invalidBody(faults);
  for (const { value } of articles) checkDocument(value, bytesMax);
}

/** R14: the members that the specification names have its types. Only the title is required. */
function checkArticle({ value, at, before }: Checked, faults: FieldError[]): void {
  if (!isJsonObject(value)) {
    fault(faults, at, 'must be an object');
    return;
  }
  if (before !== undefined && value['id'] !== before.id) {
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
  // a client reads back what it wrote (R14, R17). One that a patch did not change was checked when
  // it came; checking it again costs more than the other members.
  const isNew = publishedAt !== undefined && publishedAt !== before?.['publishedAt'];
  if (isNew && !isLocalDateTime(publishedAt)) {
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
