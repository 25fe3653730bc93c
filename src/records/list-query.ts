/** The query string of a list: which records a page has, and the next page (R14a, R37). */

import { toId as toUuid } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import { parseQuery } from '../http/query.ts';
import type { CommentStatus, PostStatus } from '../store/model.ts';
import type { Range } from '../store/store.ts';

/** Limit for the records of a page. */
export const limitMax = 1_000;

/** The valid values of the parameters, for messages. */
export const oneLimit = `one whole number from 1 to ${limitMax}`;
export const oneId = 'one id';
export const postStatuses: readonly PostStatus[] = ['DRAFT', 'PENDING_MODERATION', 'PUBLISHED'];
export const commentStatuses: readonly CommentStatus[] = ['PENDING', 'PUBLISHED'];

/** Selects records: posts of an author (R46), those with a status (R37, R52). */
export interface Filter<S extends string = string> {
  readonly author?: string | undefined;
  readonly status?: S | undefined;
}

export interface ListQuery<S extends string = string> extends Range, Filter<S> {}

interface ListParameters<S extends string> {
  /** Parses the id of a record; undefined if it is malformed. */
  readonly toId: (text: string) => Range['after'];
  /** `?author=` selects records. */
  readonly hasAuthors?: true;
  /** The values of `?status=`, which selects records. */
  readonly statuses?: readonly S[];
}

/** Fails with `invalid_parameter` if a parameter is malformed. */
export function toListQuery<S extends string>(
  query: string,
  { toId, hasAuthors, statuses }: ListParameters<S>,
): ListQuery<S> {
  if (query === '') return {};
  const parameters = parseQuery(query);
  /** An empty parameter counts as absent (R8): forms send empty fields. */
  const read = <V>(name: string, meaning: string, toValue: (text: string) => V | undefined) => {
    const texts = parameters.getAll(name);
    const [text = ''] = texts;
    if (text === '' && texts.length < 2) return undefined;
    const value = texts.length === 1 ? toValue(text) : undefined;
    if (value === undefined) throw invalidParameter(name, meaning);
    return value;
  };
  return {
    author: hasAuthors && read('author', oneId, toUuid),
    status:
      statuses &&
      read('status', `one of ${statuses.join(', ')}`, (text) =>
        statuses.find((each) => each === text),
      ),
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
