/**
 * Documents by their hash: automatic persisted queries (a client sends the hash, and the text only
 * where the hash is not known yet), and trusted documents (only what a manifest lists can run).
 */

import { createHash } from 'node:crypto';
import { BoundedMap } from '../../bounded-map.ts';
import { documentsKeptMax } from '../../config-limits.ts';
import { isObject } from '../../http/json.ts';
import { refuseRequest } from '../errors.ts';

/** Hash, or any other id that clients send in its place → text of a document. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** What a request names its document by. */
export interface DocumentSource {
  readonly query?: string | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** Finds the text of the document that a request means. Throws a RequestError. */
export type FindText = (source: DocumentSource) => string;

/** The average length, in characters, that kept documents may have. */
const textLengthAverage = 512;

export function createFindText(trusted: TrustedDocuments | undefined): FindText {
  return trusted === undefined ? findPersisted() : findTrusted(trusted);
}

function findPersisted(): FindText {
  const kept = new BoundedMap<string>(documentsKeptMax * textLengthAverage);
  return ({ query, extensions }) => {
    const named = extensions?.['persistedQuery'];
    if (named === undefined) return requireText(query);
    const hash = readHash(named);
    if (hash === undefined) {
      throw refuseRequest('BAD_USER_INPUT', 'persistedQuery needs version 1 and a sha256Hash.');
    }
    if (query === undefined) {
      const known = kept.use(hash);
      if (known !== undefined) return known;
      // Clients compare this exact message, and then send hash and text.
      throw refuseRequest('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
    }
    if (createHash('sha256').update(query).digest('hex') !== hash) {
      throw refuseRequest('BAD_USER_INPUT', 'The sha256Hash is not that of the query.');
    }
    kept.set(hash, query, Math.max(query.length, textLengthAverage));
    return query;
  };
}

function findTrusted(trusted: TrustedDocuments): FindText {
  const texts = new Set(trusted.values());
  return ({ query, extensions }) => {
    const named = extensions?.['persistedQuery'];
    const text = named === undefined ? requireText(query) : trusted.get(readHash(named) ?? '');
    if (text !== undefined && texts.has(text) && (query ?? text) === text) return text;
    // No PERSISTED_QUERY_NOT_FOUND: a client would send the text, in vain.
    throw refuseRequest('BAD_USER_INPUT', 'Only documents of the manifest can run here.');
  };
}

function requireText(query: string | undefined): string {
  if (query === undefined) throw refuseRequest('BAD_USER_INPUT', 'The request has no query.');
  return query;
}

/** `{version: 1, sha256Hash}`: the hash, or undefined. */
function readHash(given: unknown): string | undefined {
  if (!isObject(given)) return undefined;
  const { version, sha256Hash } = given;
  return version === 1 && typeof sha256Hash === 'string' ? sha256Hash.toLowerCase() : undefined;
}
