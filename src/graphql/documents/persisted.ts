/**
 * Documents by hash: automatic persisted queries (a client sends the hash, and the text only if the
 * server does not know the hash), and trusted documents (only those of a manifest can run).
 */

import { createHash } from 'node:crypto';
import { BoundedMap } from '../../bounded-map.ts';
import { persistedTextsBytesMax } from '../../config.ts';
import { refuseRequest } from '../errors.ts';

/** Hash, or another id that clients use → text of a document. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** How a request identifies its document: by text, or by hash. */
export interface DocumentSource {
  readonly query?: string | undefined;
  /** `extensions.persistedQuery.sha256Hash`; empty if that extension is malformed. */
  readonly documentHash?: string | undefined;
}

/** Returns the text of the document that a request identifies. Throws a RequestError. */
export type FindText = (source: DocumentSource) => string;

/** Memory of an entry without its text, in bytes. */
const entryBytes = 256;

/** Finds every document that comes as text, or whose text came with its hash before. */
export function findPersisted(): FindText {
  const kept = new BoundedMap<string>(persistedTextsBytesMax);
  return ({ query, documentHash: hash }) => {
    if (hash === undefined) return requireText(query);
    if (hash === '') {
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
    kept.set(hash, query, entryBytes + 2 * query.length);
    return query;
  };
}

/** Finds only the documents of the manifest. */
export function findTrusted(trusted: TrustedDocuments): FindText {
  const texts = new Set(trusted.values());
  return ({ query, documentHash }) => {
    const text = documentHash === undefined ? requireText(query) : trusted.get(documentHash);
    if (text !== undefined && texts.has(text) && (query ?? text) === text) return text;
    // Not PERSISTED_QUERY_NOT_FOUND: the client would send the text, which cannot help.
    throw refuseRequest('BAD_USER_INPUT', 'Only documents of the manifest can run here.');
  };
}

function requireText(query: string | undefined): string {
  if (query === undefined) throw refuseRequest('BAD_USER_INPUT', 'The request has no query.');
  return query;
}
