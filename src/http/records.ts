/** Records as answers: one by its id, or a list, whole or by pages. */

import { AppError } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { AnswerCache, CurrentOrNot } from './answer-cache.ts';
import { taggedReply } from './etag.ts';
import type { ListPage, ReplyWithList } from './json-list.ts';
import type { Handler, HttpReply, HttpRequest } from './message.ts';

/** Records that are found by the `{id}` of a path. */
export interface RecordRoute<R, I, T> {
  /** The route without `/{id}`: names the answers in the cache. */
  readonly key: string;
  /** What a 404 calls such a record. */
  readonly noun: string;
  /** An id out of a text; undefined where it is none. */
  readonly toId: (text: string) => I | undefined;
  readonly find: (records: R, id: I) => MaybePromise<T | undefined>;
  /** The JSON text of one record. */
  readonly toJson: (record: T) => string;
}

/** `GET` of one record, under its tag. */
export function createFind<R extends CurrentOrNot, I extends string | number, T>(
  answers: AnswerCache<R>,
  route: RecordRoute<R, I, T>,
): Handler {
  const { key, noun, find, toJson } = route;
  return (request) => {
    const id = getId(request, route);
    // By the id alone: one record has one answer, however its path is spelled.
    return answers.get(`${key}/${id}`, (records, keep) =>
      andThen(find(records, id), (record) => keep(taggedReply(toJson(getFound(record, noun))))),
    );
  };
}

/** R4: an id that is not well formed names nothing that exists. */
export function getId<I>(
  request: HttpRequest,
  { toId, noun }: Pick<RecordRoute<never, I, never>, 'toId' | 'noun'>,
): I {
  return getFound(toId(request.params['id'] ?? ''), noun);
}

/** What was found, or 404. */
export function getFound<T>(found: T | undefined, noun: string): T {
  if (found === undefined) throw new AppError('not_found', `There is no ${noun} with this id.`);
  return found;
}

export interface ListRoute<R, T> {
  /** The name of the whole list in the cache. */
  readonly key: string;
  readonly list: (records: R) => MaybePromise<PagedList<T>>;
  readonly toJson: (record: T) => string;
  readonly toId: (text: string) => Id | undefined;
}

type Id = string | number;

/** Records in one order, and the way to read them from behind one of them. */
interface PagedList<T> {
  read(range: Range): MaybePromise<ListPage<T>>;
}

interface Range {
  readonly limit: number | undefined;
  readonly after: Id | undefined;
}

/** Records of a page that is asked for. */
export const limitMax = 1_000;

/** What the parameters must be. */
export const oneLimit = `one whole number from 1 to ${limitMax}`;
export const oneId = 'one id';

/**
 * `?limit=` asks for a page, `?after=` for what comes behind a record; where more follow, `Link`
 * leads to them (RFC 8288). Throws `invalid_parameter` where one of the two is not well formed.
 */
export function replyWithList<R, T extends { readonly id: Id }>(
  { path, query }: HttpRequest,
  reply: ReplyWithList<R>,
  { key, list, toJson, toId }: ListRoute<R, T>,
): MaybePromise<HttpReply> {
  const range = toRange(query, toId);
  const { limit, after } = range;
  let next = '';
  const answer = reply({
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
  return andThen(answer, (made) =>
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
  return {
    limit: read('limit', oneLimit, toLimit),
    after: read('after', oneId, toId),
  };
}

function toLimit(text: string): number | undefined {
  const limit = Number(text);
  return /^[1-9]\d{0,3}$/.test(text) && limit <= limitMax ? limit : undefined;
}

export function invalidParameter(parameter: string, meaning: string): AppError {
  const message = `The parameter ${parameter} must be ${meaning}.`;
  return new AppError('invalid_parameter', message, { parameter });
}
