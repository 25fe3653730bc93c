/** The query string of a list: which records a page has, and the next page (R14a, R37). */

import { toId as toUuid } from '../domain/ids.ts';
import type { PostFilter } from '../domain/readers.ts';
import { AppError } from '../errors.ts';
import type { PostStatus } from '../store/model.ts';
import type { Range } from '../store/store.ts';

/** Limit for the records of a page. */
export const limitMax = 1_000;

/** The valid values of the parameters, for messages. */
export const oneLimit = `one whole number from 1 to ${limitMax}`;
export const oneId = 'one id';
export const postStatuses: readonly PostStatus[] = ['DRAFT', 'PENDING_MODERATION', 'PUBLISHED'];
const oneStatus = `one of ${postStatuses.join(', ')}`;

export interface ListQuery extends Range, PostFilter {}

interface ListParameters {
  /** Parses the id of a record; undefined if it is malformed. */
  readonly toId: (text: string) => Range['after'];
  /** `?author=` and `?status=` select records. */
  readonly isFiltered?: true;
}

/** Fails with `invalid_parameter` if a parameter is malformed. */
export function toListQuery(query: string, { toId, isFiltered }: ListParameters): ListQuery {
  if (query === '') return {};
  const parameters = new URLSearchParams(query);
  const read = <V>(name: string, meaning: string, toValue: (text: string) => V | undefined) => {
    const texts = parameters.getAll(name);
    const [text] = texts;
    if (text === undefined) return undefined;
    const value = texts.length === 1 ? toValue(text) : undefined;
    if (value === undefined) throw invalidParameter(name, meaning);
    return value;
  };
  return {
    author: isFiltered && read('author', oneId, toUuid),
    status:
      isFiltered && read('status', oneStatus, (text) => postStatuses.find((each) => each === text)),
    limit: read('limit', oneLimit, toLimit),
    after: read('after', oneId, toId),
  };
}

/** The target of a page as `Link` writes it, which is also its cache key. */
export function toTarget(key: string, { author, status, limit, after }: ListQuery): string {
  let target = key;
  for (const [name, value] of Object.entries({ author, status, limit, after })) {
    if (value !== undefined) target += `${target === key ? '?' : '&'}${name}=${value}`;
  }
  return target;
}

function toLimit(text: string): number | undefined {
  const limit = Number(text);
  return /^[1-9]\d{0,3}$/.test(text) && limit <= limitMax ? limit : undefined;
}

export function invalidParameter(parameter: string, meaning: string): AppError {
  const message = `The parameter ${parameter} must be ${meaning}.`;
  return new AppError('invalid_parameter', message, { parameter });
}
