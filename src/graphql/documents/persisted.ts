/**
 * Documents by their hash: automatic persisted queries (a client sends the hash, and the text only
 * where the hash is not known yet), and trusted documents (only what a manifest lists can run).
 */

import { createHash } from 'node:crypto';
import { documentsKeptMax } from '../../config-limits.ts';
import { isObject } from '../../http/json.ts';
import { type GraphqlError, toPlainError } from '../errors.ts';
import { createTextCache } from './text-cache.ts';

/** Hash, or any other id that clients send in its place → text of a document. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** What a request names its document by. */
export interface DocumentSource {
  readonly query?: string | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** The text of the document, or why there is none. */
export type FoundText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing'; readonly error: GraphqlError };

export interface DocumentTexts {
  find(source: DocumentSource): FoundText;
}

/** The average length, in characters, that kept documents may have. */
const textLengthAverage = 512;

export function createDocumentTexts(trusted: TrustedDocuments | undefined): DocumentTexts {
  return trusted === undefined ? createPersisted() : createTrusted(trusted);
}

function createPersisted(): DocumentTexts {
  const kept = createTextCache<string>({
    entriesMax: documentsKeptMax,
    lengthMax: documentsKeptMax * textLengthAverage,
  });
  return {
    find({ query, extensions }) {
      if (extensions?.['persistedQuery'] === undefined)
        return query === undefined ? noText : text(query);
      const hash = readHash(extensions['persistedQuery']);
      if (hash === undefined) {
        return missing('BAD_USER_INPUT', 'persistedQuery needs version 1 and a sha256Hash.');
      }
      if (query === undefined) {
        const known = kept.get(hash);
        // Clients compare this exact message, and then send hash and text.
        if (known === undefined)
          return missing('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
        return text(known);
      }
      if (createHash('sha256').update(query).digest('hex') !== hash) {
        return missing('BAD_USER_INPUT', 'The sha256Hash is not that of the query.');
      }
      kept.set(hash, query, query.length);
      return text(query);
    },
  };
}

function createTrusted(trusted: TrustedDocuments): DocumentTexts {
  const texts = new Set(trusted.values());
  return {
    find({ query, extensions }) {
      if (extensions?.['persistedQuery'] === undefined) {
        if (query === undefined) return noText;
        if (texts.has(query)) return text(query);
        return missing('BAD_USER_INPUT', 'Only documents of the manifest can run here.');
      }
      const hash = readHash(extensions['persistedQuery']);
      const known = hash === undefined ? undefined : trusted.get(hash);
      // No PERSISTED_QUERY_NOT_FOUND: a client would send the text, in vain.
      if (known === undefined || (query !== undefined && query !== known)) {
        return missing('BAD_USER_INPUT', 'Only documents of the manifest can run here.');
      }
      return text(known);
    },
  };
}

/** `{version: 1, sha256Hash}`: the hash, or undefined. */
function readHash(given: unknown): string | undefined {
  if (!isObject(given)) return undefined;
  const { version, sha256Hash } = given;
  return version === 1 && typeof sha256Hash === 'string' ? sha256Hash.toLowerCase() : undefined;
}

function text(found: string): FoundText {
  return { kind: 'text', text: found };
}

function missing(code: GraphqlError['extensions']['code'], message: string): FoundText {
  return { kind: 'missing', error: toPlainError(code, message) };
}

const noText = missing('BAD_USER_INPUT', 'The request has no query.');
