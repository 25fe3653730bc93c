/** Responds with records: one by its id, or a list, whole or in pages. */

import { AppError } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { ResponseCache, CurrentOrNot } from './response-cache.ts';
import { taggedResponse } from './etag.ts';
import type { ListPage, ToListResponse } from './json-list.ts';
import type { Handler, HttpResponse, HttpRequest } from './message.ts';

/** How a route finds the record of the path's `{id}`. */
export interface RecordRoute<R, I, T> {
  /** The path without `/{id}`. */
  readonly key: string;
  /** The name of such a record in a 404. */
  readonly noun: string;
  /** Parses an id; undefined if it is malformed. */
  readonly toId: (text: string) => I | undefined;
  readonly find: (records: R, id: I) => MaybePromise<T | undefined>;
  /** Returns the JSON text of one record. */
  readonly toJson: (record: T) => string;
}

/** `GET` of one record, with its entity tag. */
export function createFind<R extends CurrentOrNot, I extends string | number, T>(
  responses: ResponseCache<R>,
  route: RecordRoute<R, I, T>,
): Handler {
  const { key, noun, find, toJson } = route;
  return (request) =>
    responses.get(request.path, (records, keep) => {
      const id = getId(request, route);
      return andThen(find(records, id), (record) => {
        const response = taggedResponse(toJson(getFound(record, noun)));
        // A path can spell an id in several ways: only the usual one is cached.
        return request.path === `${key}/${id}` ? keep(response) : response;
      });
    });
}

/** R4: a malformed id is a 404. */
export function getId<I>(
  request: HttpRequest,
  { toId, noun }: Pick<RecordRoute<never, I, never>, 'toId' | 'noun'>,
): I {
  return getFound(toId(request.params['id'] ?? ''), noun);
}

/** Returns what was found; 404 for undefined. */
export function getFound<T>(found: T | undefined, noun: string): T {
  if (found === undefined) throw new AppError('not_found', `There is no ${noun} with this id.`);
  return found;
}

export interface ListRoute<R, T> {
  /** Its path, which is the cache key of the whole list. */
  readonly key: string;
  readonly list: (records: R) => MaybePromise<PagedList<T>>;
  readonly toJson: (record: T) => string;
  readonly toId: (text: string) => Id | undefined;
}

type Id = string | number;

/** Records in a fixed order, which can be read from any record on. */
interface PagedList<T> {
  read(range: Range): MaybePromise<ListPage<T>>;
}

interface Range {
  readonly limit: number | undefined;
  readonly after: Id | undefined;
}

/** Limit for the records of a page. */
export const limitMax = 1_000;

/** The valid values of the parameters, for messages. */
export const oneLimit = `one whole number from 1 to ${limitMax}`;
export const oneId = 'one id';

/**
 * `?limit=` requests a page, `?after=` the records after one id; `Link` leads to the next page (RFC
 * 8288). Throws `invalid_parameter` if one of them is malformed.
 */
export function toPagedResponse<R, T extends { readonly id: Id }>(
  { path, query }: HttpRequest,
  toListResponse: ToListResponse<R>,
  { key, list, toJson, toId }: ListRoute<R, T>,
): MaybePromise<HttpResponse> {
  const range = toRange(query, toId);
  const { limit, after } = range;
  let next = '';
  const response = toListResponse({
    key: limit === undefined && after === undefined ? key : undefined,
    read: (records) =>
      andThen(list(records), (found) =>
        andThen(found.read(range), (page) => {
          if (limit === undefined) return page;
          const last = page.records.at(-1);
          if (page.next !== undefined && last !== undefined) {
            next = `<${path}?limit=${limit}&after=${last.id}>; rel="next"`;
          }
          return { records: page.records, next: undefined };
        }),
      ),
    toJson,
  });
  return andThen(response, (made) =>
    next === '' ? made : { ...made, headers: [...made.headers, 'Link', next] },
  );
}

const whole: Range = { limit: undefined, after: undefined };

function toRange(query: string, toId: ListRoute<never, unknown>['toId']): Range {
  if (query === '') return whole;
  const parameters = new URLSearchParams(query);
  const read = <V>(name: string, meaning: string, toValue: (text: string) => V | undefined) => {
    const texts = parameters.getAll(name);
    const [text] = texts;
    if (text === undefined) return undefined;
    const value = texts.length === 1 ? toValue(text) : undefined;
    if (value === undefined) throw invalidParameter(name, meaning);
    return value;
  };
  return { limit: read('limit', oneLimit, toLimit), after: read('after', oneId, toId) };
}

function toLimit(text: string): number | undefined {
  const limit = Number(text);
  return /^[1-9]\d{0,3}$/.test(text) && limit <= limitMax ? limit : undefined;
}

export function invalidParameter(parameter: string, meaning: string): AppError {
  const message = `The parameter ${parameter} must be ${meaning}.`;
  return new AppError('invalid_parameter', message, { parameter });
}
