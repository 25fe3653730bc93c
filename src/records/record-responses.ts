/** Responds with records: one by its id, or a list, whole or in pages. */

import type { Reader, Records } from '../domain/readers.ts';
import { AppError } from '../errors.ts';
import { taggedResponse } from '../http/etag.ts';
import {
  emptyResponse,
  type HttpResponse,
  type HttpRequest,
  jsonTextResponse,
} from '../http/message.ts';
import { prefersRepresentation, withPreferenceApplied } from '../http/prefer.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { List, Page } from '../store/store.ts';
import { type Filter, type ListQuery, toListQuery, toTarget } from './list-query.ts';
import type { ToListResponse } from './list-response.ts';
import { type ResponseCache, toJsonBody, type ToText } from './response-cache.ts';
import type { TrackedRecords } from './tracked-records.ts';

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

export interface ListRoute<T, S extends string = never> {
  /** The path of the list, as this service writes it. */
  readonly key: string;
  /** `filter`: only the records that it selects. Each has a value of those below. */
  readonly list: (records: Records, filter: Filter<S>) => MaybePromise<List<T>>;
  readonly hasAuthors?: true;
  readonly statuses?: readonly S[];
  readonly toJson: (record: T) => string;
  readonly toId: (text: string) => Id | undefined;
}

/** Finds who asks; undefined if the records are those of everybody. */
type ReaderOf = (request: HttpRequest) => MaybePromise<Reader | undefined>;

interface Deps {
  readonly responses: ResponseCache;
  readonly toListResponse: ToListResponse;
  readonly toText: ToText;
  readonly run: RunInTurn;
}

/** Most ids and queries are as this service writes them: what is cached is found before parsing. */
const usualPath = /\/[\da-f-]+$/;
const usualQuery = /^limit=\d+(?:&after=[\da-f-]+)?$/;

/** A page that leaves out records is filled up to so many characters. */
const filledLengthMax = 1_048_576;

/** How handlers respond with records. */
export type RecordResponses = ReturnType<typeof createRecordResponses>;

export function createRecordResponses({ responses, toListResponse, toText, run }: Deps) {
  return {
    /** The handler for `GET` of one record, with its entity tag. */
    find: <I extends Id, T>(route: RecordRoute<I, T>) => {
      return (request: HttpRequest, reader: Reader | undefined): MaybePromise<HttpResponse> => {
        const { path } = request;
        const key = usualPath.test(path) ? path : `${route.key}/${getId(request, route)}`;
        const make = (records: Records): MaybePromise<HttpResponse> =>
          andThen(route.find(records, getId(request, route)), (record) =>
            taggedResponse(toJsonBody(route.toJson(getFound(record, route.noun)))),
          );
        return responses.respond(key, make, { reader });
      };
    },
    /**
     * Returns what makes the response to a POST that has created a record, which has the content
     * `plain`. If the client prefers it, the record is the content, as its `GET` gives it (R45).
     */
    created: <I extends Id, T>(route: RecordRoute<I, T>, readerOf: ReaderOf, plain?: string) => {
      const base = plain === undefined ? emptyResponse(201) : jsonTextResponse(201, plain);
      return (request: HttpRequest, id: Id, location: string): MaybePromise<HttpResponse> => {
        if (!prefersRepresentation(request)) return toCreated(base, location);
        const key = getFound(route.toId(String(id)), route.noun);
        const find = async () => route.find(responses.read(await readerOf(request)), key);
        return orUndefined(find).then((record) => {
          if (record === undefined) return toCreated(base, location);
          const text = toJsonBody(route.toJson(record));
          return withPreferenceApplied(toCreated(taggedResponse(text), location));
        });
      };
    },
    /**
     * `?limit=` requests a page, `?after=` the records after one id; `Link` leads to the next page
     * (RFC 8288). Fails with `invalid_parameter` if one of them is malformed.
     */
    list<T extends { readonly id: Id }, S extends string = never>(
      request: HttpRequest,
      reader: Reader | undefined,
      route: ListRoute<T, S>,
    ): MaybePromise<HttpResponse> {
      const { query } = request;
      const parse = (): ListQuery<S> => toListQuery(query, route);
      const parsed = usualQuery.test(query) ? undefined : parse();
      const target = parsed ? toTarget(route.key, parsed) : `${route.key}?${query}`;
      const make = (records: TrackedRecords) =>
        readList([request, parsed ?? parse()], route, records);
      return responses.respond(target, make, { reader });
    },
  };

  async function readList<T extends { readonly id: Id }, S extends string>(
    [request, { author, status, ...range }]: readonly [HttpRequest, ListQuery<S>],
    { key, list, toJson }: ListRoute<T, S>,
    records: TrackedRecords,
  ): Promise<HttpResponse> {
    const found = await list(records, { author, status });
    // A page of 1,000 records is work, on stores that read at once (R47).
    const first = await run(() => found.read(range));
    const page = await fill(first, { ...range, toJson, run });
    const last = range.limit && page.next ? page.records.at(-1) : undefined;
    const response = await toListResponse({
      request,
      first: last === undefined ? page : { records: page.records, next: undefined },
      version: records.version,
      toJson: (record) => toText(record, toJson),
    });
    const next = last && toTarget(key, { author, status, limit: range.limit, after: last.id });
    return next === undefined ? response : withNext(response, next);
  }
}

function withNext(response: HttpResponse, next: string): HttpResponse {
  return { ...response, headers: [...response.headers, 'Link', `<${next}>; rel="next"`] };
}

const none = { records: [], next: undefined };

interface Filling<T> {
  readonly limit?: number | undefined;
  readonly toJson: (record: T) => string;
  readonly run: RunInTurn;
}

/** Of a page that leaves out records, no more are known to follow until one is found. */
async function fill<T>(first: Page<T>, { limit, toJson, run }: Filling<T>): Promise<Page<T>> {
  if (limit === undefined || first.leftOut === undefined) return first;
  const records: T[] = [];
  let length = 0;
  for (let page = first; ; page = await run(page.next)) {
    records.push(...page.records);
    for (const record of page.records) length += toJson(record).length;
    const isFull = records.length > limit || length > filledLengthMax;
    if (page.next === undefined || isFull) {
      const next = records.length > limit ? () => none : page.next;
      return { records: records.slice(0, limit), next };
    }
  }
}

function toCreated({ headers, body }: HttpResponse, location: string): HttpResponse {
  return { status: 201, headers: [...headers, 'Location', location], body };
}

/** Undefined where the store does not answer: what has been stored is not called a failure. */
async function orUndefined<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** R4: a malformed id is answered with 404. */
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
