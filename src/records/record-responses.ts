/** Responds with records: one by its id, or a list, whole or in pages. */

import type { PostFilter, Reader, Records } from '../domain/readers.ts';
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
import type { List, Page, RecordText } from '../store/store.ts';
import { type ListQuery, toListQuery, toTarget } from './list-query.ts';
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

export interface ListRoute<T> {
  /** The path of the list, as this service writes it. */
  readonly key: string;
  /** `filter`: only the posts that it selects. */
  readonly list: (records: Records, filter: PostFilter) => MaybePromise<List<T>>;
  readonly isFiltered?: true;
  readonly toJson: (record: T) => string;
  /** The members of `toJson`, if a list can have many records. */
  readonly members?: readonly string[];
  readonly toId: (text: string) => Id | undefined;
}

/** Finds who asks; undefined if the records are those of everybody. */
type ReaderOf = (request: HttpRequest) => MaybePromise<Reader | undefined>;

interface RecordResponsesDeps {
  readonly responses: ResponseCache;
  readonly toListResponse: ToListResponse;
  readonly toText: ToText;
}

/** Most ids and queries are as this service writes them: what is cached is found before parsing. */
const usualPath = /\/[\da-f-]+$/;
const usualQuery = /^limit=\d+(?:&after=[\da-f-]+)?$/;

/** How handlers respond with records. */
export type RecordResponses = ReturnType<typeof createRecordResponses>;

export function createRecordResponses({ responses, toListResponse, toText }: RecordResponsesDeps) {
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
    list<T extends { readonly id: Id }>(
      request: HttpRequest,
      reader: Reader | undefined,
      route: ListRoute<T>,
    ): MaybePromise<HttpResponse> {
      const { query } = request;
      const parse = (): ListQuery => toListQuery(query, route);
      const parsed = usualQuery.test(query) ? undefined : parse();
      const target = parsed ? toTarget(route.key, parsed) : `${route.key}?${query}`;
      const make = (records: TrackedRecords) => readList(parsed ?? parse(), route, records);
      return responses.respond(target, make, { reader, isRead: true });
    },
  };

  async function readList<T extends { readonly id: Id }>(
    { author, status, ...range }: ListQuery,
    { key, list, toJson, members }: ListRoute<T>,
    records: TrackedRecords,
  ): Promise<HttpResponse> {
    const found = await list(records, { author, status });
    const page: Page<T | RecordText> = await (range.limit && members && found.readJson
      ? found.readJson(range, members)
      : found.read(range));
    const last = range.limit && page.next ? page.records.at(-1) : undefined;
    const response = await toListResponse({
      first: last === undefined ? page : { records: page.records, next: undefined },
      version: records.version,
      toJson: (record) => ('json' in record ? record.json : toText(record, toJson)),
    });
    if (last === undefined) return response;
    const next = toTarget(key, { author, status, limit: range.limit, after: last.id });
    const headers = [...response.headers, 'Link', `<${next}>; rel="next"`];
    return { ...response, headers };
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
