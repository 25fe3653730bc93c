/**
 * The rules of articles: open documents with typed known members (R14), and what a patch may do.
 */

import { invalidBody, type FieldError } from '../errors.ts';
import type { Article, ArticleDraft, Json } from '../store/model.ts';
import { checkDocument, isJsonArray, isJsonObject } from './json-value.ts';
import { parseLocalDateTime } from './local-date-time.ts';
import { isBlank } from './text.ts';

/** Faults that one answer lists. */
const faultsMax = 20;

/**
 * What a client wants stored, with or without an id. Throws `invalid_body` with the place of each
 * fault, `content_too_large` beyond `bytesMax`.
 */
export function decodeArticleDraft(body: unknown, bytesMax: number): ArticleDraft {
  const value = body as Json; // as `http/json.ts` lets it in
  const faults: FieldError[] = [];
  checkMembers({ value, at: '' }, faults);
  if (faults.length > 0) throw invalidBody(faults);
  checkDocument(value, bytesMax);
  return value as ArticleDraft; // checkMembers found nothing
}

/** The article that a patch makes of `before`, if it is one and keeps its id (R16). */
export function toPatchedArticle(before: Article, after: Json, bytesMax: number): Article {
  const faults: FieldError[] = [];
  checkPatched({ before, value: after, at: '' }, faults);
  if (faults.length > 0) throw invalidBody(faults);
  checkDocument(after, bytesMax);
  return after as Article; // checkPatched found nothing
}

/**
 * The same for all articles: none may be added, dropped or moved (R16). One that was not touched
 * is the same object and is not checked again.
 */
export function toPatchedArticles(
  before: readonly Article[],
  after: Json,
  bytesMax: number,
): readonly Article[] {
  if (after === null || !isJsonArray(after) || after.length !== before.length) {
    throw invalidBody([{ pointer: '', message: 'must hold the same articles' }]);
  }
  const faults: FieldError[] = [];
  for (const [index, article] of before.entries()) {
    if (faults.length === faultsMax) break;
    const patched = after[index] as Json; // as many as before
    if (patched !== article) {
      checkPatched({ before: article, value: patched, at: `/${index}` }, faults);
    }
  }
  if (faults.length > 0) throw invalidBody(faults);
  for (const [index, article] of before.entries()) {
    const patched = after[index] as Json;
    if (patched !== article) checkDocument(patched, bytesMax);
  }
  return after as readonly Article[]; // checkPatched found nothing
}

interface Checked {
  readonly value: Json;
  /** Pointer to the value. */
  readonly at: string;
  /** The article that the value comes from. */
  readonly before?: Article;
}

function checkPatched(checked: Required<Checked>, faults: FieldError[]): void {
  const { before, value, at } = checked;
  if (isJsonObject(value) && value['id'] !== before.id) {
    fault(faults, `${at}/id`, 'must stay as it is');
  } else {
    checkMembers(checked, faults);
  }
}

/** R14: the members that the specification names have its types; only the title must be there. */
function checkMembers({ value, at, before }: Checked, faults: FieldError[]): void {
  if (!isJsonObject(value)) {
    fault(faults, at, 'must be an object');
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
  // Choice: a date-time is checked, but kept as it was sent. An article is an open document, and
  // a client reads back what it wrote (R14, R17).
  // One that a patch leaves alone was checked when it came; reading it costs more than the rest.
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
