/** Responds with records: one by its id, or a list, whole or in pages. */

import { AppError } from '../errors.ts';
import { taggedResponse } from '../http/etag.ts';
import type { Handler, HttpResponse, HttpRequest } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PostStatus } from '../store/model.ts';
import type { List, Page, Range, Records, RecordText } from '../store/store.ts';
import type { ToListResponse } from './list-response.ts';
import type { Reading, ResponseCache, ToText } from './response-cache.ts';

type Id = string | number;

/** How a route finds the record of the path's `{id}`. */
export interface RecordRoute<I, T> {
  /** The path without `/{id}`. */
  readonly key: string;
  /** The name of such a record in a 404. */
  readonly noun: string;
  /** Parses an id; undefined if it is malformed. */
  readonly toId: (text: string) => I | undefined;
  readonly find: (records: Records, id: I) => MaybePromise<T | undefined>;
  /** Returns the JSON text of one record. */
  readonly toJson: (record: T) => string;
}

export interface ListRoute<T> {
  /** Its path, as this service writes it. */
  readonly key: string;
  /** `status`: only the posts that have it. */
  readonly list: (records: Reading, status?: PostStatus) => MaybePromise<List<T>>;
  /** `?status=` selects records (R37). */
  readonly hasStatus?: true;
  readonly toJson: (record: T) => string;
  /** The members of `toJson`, if a list can have many records. */
  readonly members?: readonly string[];
  readonly toId: (text: string) => Id | undefined;
}

interface RecordResponsesDeps {
  readonly responses: ResponseCache;
  readonly toListResponse: ToListResponse;
  readonly toText: ToText;
}

/** How handlers respond with records. */
export type RecordResponses = ReturnType<typeof createRecordResponses>;

export function createRecordResponses({ responses, toListResponse, toText }: RecordResponsesDeps) {
  return {
    /** The handler for `GET` of one record, with its entity tag. */
    find: <I extends Id, T>(route: RecordRoute<I, T>): Handler => {
      return (request) =>
        responses.respond(request.path, (records) => readOne(request, route, records));
    },
    /**
     * `?limit=` requests a page, `?after=` the records after one id; `Link` leads to the next page
     * (RFC 8288). Fails with `invalid_parameter` if one of them is malformed.
     */
    list<T extends { readonly id: Id }>(
      request: HttpRequest,
      route: ListRoute<T>,
    ): MaybePromise<HttpResponse> {
      const { path, query } = request;
      const target = query === '' ? path : `${path}?${query}`;
      const readTarget = (records: Reading): MaybePromise<HttpResponse> => {
        const asked = toListQuery(query, route);
        const usual = toTarget(route.key, asked);
        const make = (reading: Reading): Promise<HttpResponse> => readList(asked, route, reading);
        // A target can spell a page in several ways: only the usual one is cached.
        return target === usual ? make(records) : responses.respond(usual, make, true);
      };
      return responses.respond(target, readTarget, true);
    },
  };

  async function readOne<I extends Id, T>(
    request: HttpRequest,
    route: RecordRoute<I, T>,
    records: Reading,
  ): Promise<HttpResponse> {
    const id = getId(request, route);
    const record = getFound(await route.find(records, id), route.noun);
    const response = taggedResponse(route.toJson(record));
    // A path can spell an id in several ways: only the usual one is cached.
    if (request.path !== `${route.key}/${id}`) return response;
    return responses.store(request.path, records, response);
  }

  async function readList<T extends { readonly id: Id }>(
    { status, ...range }: ListQuery,
    { key, list, toJson, members }: ListRoute<T>,
    records: Reading,
  ): Promise<HttpResponse> {
    const target = toTarget(key, { status, ...range });
    const found = await list(records, status);
    const page: Page<T | RecordText> = await (range.limit && members && found.readJson
      ? found.readJson(range, members)
      : found.read(range));
    const last = range.limit && page.next ? page.records.at(-1) : undefined;
    const response = await toListResponse({
      first: last === undefined ? page : { records: page.records, next: undefined },
      version: records.version,
      toJson: (record) => ('json' in record ? record.json : toText(record, toJson)),
    });
    if (last === undefined) return responses.store(target, records, response);
    const next = toTarget(key, { status, limit: range.limit, after: last.id });
    const headers = [...response.headers, 'Link', `<${next}>; rel="next"`];
    return responses.store(target, records, { ...response, headers });
  }
}

/** R4: a malformed id is a 404. */
export function getId<I>(
  request: HttpRequest,
  { toId, noun }: Pick<RecordRoute<I, never>, 'toId' | 'noun'>,
): I {
  return getFound(toId(request.params['id'] ?? ''), noun);
}

/** Returns the record of the path's `{id}`. Throws 404. */
export async function getRecord<I, T>(
  records: Records,
  request: HttpRequest,
  route: Pick<RecordRoute<I, T>, 'toId' | 'noun' | 'find'>,
): Promise<T> {
  return getFound(await route.find(records, getId(request, route)), route.noun);
}

/** Returns what was found; 404 for undefined. */
export function getFound<T>(found: T | undefined, noun: string): T {
  if (found === undefined) throw new AppError('not_found', `There is no ${noun} with this id.`);
  return found;
}

/** Limit for the records of a page. */
export const limitMax = 1_000;

/** The valid values of the parameters, for messages. */
export const oneLimit = `one whole number from 1 to ${limitMax}`;
export const oneId = 'one id';
export const postStatuses: readonly PostStatus[] = ['DRAFT', 'PENDING_MODERATION', 'PUBLISHED'];
const oneStatus = `one of ${postStatuses.join(', ')}`;

interface ListQuery extends Range {
  readonly status?: PostStatus | undefined;
}

function toListQuery(
  query: string,
  { toId, hasStatus }: Pick<ListRoute<never>, 'toId' | 'hasStatus'>,
): ListQuery {
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
    status:
      hasStatus && read('status', oneStatus, (text) => postStatuses.find((each) => each === text)),
    limit: read('limit', oneLimit, toLimit),
    after: read('after', oneId, toId),
  };
}

/** The target of a page as `Link` writes it, which is also its cache key. */
function toTarget(key: string, { status, limit, after }: ListQuery): string {
  let target = key;
  for (const [name, value] of Object.entries({ status, limit, after })) {
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
