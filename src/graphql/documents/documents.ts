/**
 * Finds the document of a request: by its text, or by a hash. Documents are parsed, within the
 * limits and valid; recent ones are cached, because validation is the most expensive step of a
 * small request.
 */

import { hash } from 'node:crypto';
import {
  type ASTVisitor,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  isIntrospectionType,
  parse,
  specifiedRules,
  TokenKind,
  validate,
  type ValidationContext,
} from 'graphql';
import { BoundedMap } from '../../bounded-map.ts';
import { type Config, documentsBytesMax, persistedTextsBytesMax } from '../../config.ts';
import { errorsMax, refuseRequest, RequestError, toRequestError } from '../errors.ts';
import { checkDocument, checkText } from './limits.ts';
import { withoutOwnArguments } from './own-arguments.ts';
import type { TrustedDocuments } from './trusted-documents.ts';

/** A decoded request for one operation. It identifies its document by text, or by hash. */
export interface GraphqlRequest {
  readonly query?: string | undefined;
  /** `extensions.persistedQuery.sha256Hash`; empty if that extension is malformed. */
  readonly documentHash?: string | undefined;
  readonly operationName?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  /** True if the variables were dropped because they held too many values. */
  readonly hasTooManyVariables?: boolean;
  /** The id of the last event that the client of an event stream has got (R41). */
  readonly lastEventId?: string | undefined;
  /** The key under which its mutation is done once (R40). */
  readonly once?: OperationKey;
  readonly hasInvalidKey?: boolean;
}

export interface OperationKey {
  readonly key: string;
  /** The digest of what was sent under the key. */
  readonly fingerprint: string;
}

export interface ValidDocument {
  readonly document: DocumentNode;
  /** The document of a group of subscriptions (`own-arguments.ts`). */
  readonly shared: DocumentNode;
}

/** Without `trusted`, every document can run. The returned function throws a RequestError. */
export function createDocuments(
  schema: GraphQLSchema,
  limits: Config,
  trusted: TrustedDocuments | undefined,
): (request: GraphqlRequest) => ValidDocument {
  const findText = trusted === undefined ? findPersisted() : findTrusted(trusted);
  const cache = new BoundedMap<ValidDocument>(documentsBytesMax);
  return (request) => {
    const text = findText(request);
    const cached = cache.use(text);
    if (cached !== undefined) return cached;
    const valid = readDocument(text, schema, limits);
    const { document, shared } = valid;
    const sharedBytes = shared === document ? 0 : bytesOfDocument(shared);
    cache.set(text, valid, bytesOfDocument(document) + sharedBytes);
    return valid;
  };
}

/** Returns the text of the document that a request identifies. Throws a RequestError. */
type FindText = (request: GraphqlRequest) => string;

/** Memory of an entry without its text, in bytes. */
const entryBytes = 256;

/**
 * Automatic persisted queries: a client sends the hash, and the text only if the server does not
 * know the hash. Finds every document that comes as text, or whose text came with its hash before.
 */
function findPersisted(): FindText {
  const texts = new BoundedMap<string>(persistedTextsBytesMax);
  return ({ query, documentHash }) => {
    // Without a hash there is a text: the decoder refuses a request with neither.
    if (documentHash === undefined) return query ?? '';
    if (documentHash === '') {
      throw refuseRequest('BAD_USER_INPUT', 'persistedQuery needs version 1 and a sha256Hash.');
    }
    if (query === undefined) {
      const text = texts.use(documentHash);
      if (text !== undefined) return text;
      // Clients compare this exact message, and then send hash and text.
      throw refuseRequest('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
    }
    if (hash('sha256', query) !== documentHash) {
      throw refuseRequest('BAD_USER_INPUT', 'The sha256Hash is not that of the query.');
    }
    texts.set(documentHash, query, entryBytes + 2 * query.length);
    return query;
  };
}

/** Finds only the documents of the manifest, by id or text. */
function findTrusted(trusted: TrustedDocuments): FindText {
  const texts = new Set(trusted.values());
  return ({ query, documentHash }) => {
    const text = documentHash === undefined ? query : trusted.get(documentHash);
    if (text !== undefined && texts.has(text) && (query ?? text) === text) return text;
    // Not PERSISTED_QUERY_NOT_FOUND: the client would send the text, which cannot help.
    throw refuseRequest('BAD_USER_INPUT', 'Only documents of the manifest can run here.');
  };
}

/** A limit of its own, because comments are not counted as tokens. */
const commentsMax = 1_000;

/** Memory of a document without tokens, of a token with the nodes made of it, and of a comment. */
const [documentBytes, tokenBytes, commentBytes] = [1_024, 450, 100];

/** Memory of a parsed document and its text, in bytes: measured, and rounded up. */
export function bytesOfDocument({ loc }: DocumentNode): number {
  let bytes = documentBytes + 2 * (loc?.source.body.length ?? 0);
  for (let token = loc?.startToken; token != null; token = token.next ?? undefined) {
    bytes += token.kind === TokenKind.COMMENT ? commentBytes : tokenBytes;
  }
  return bytes;
}

/** GraphQL §5.2.4.1 (September 2025); graphql-js 16 throws where a subscription selects nothing. */
function refuseConditionalSubscriptions(context: ValidationContext): ASTVisitor {
  return {
    Directive(node) {
      if (context.getParentType() !== context.getSchema().getSubscriptionType()) return;
      const message = 'The field of a subscription must not be skipped or included.';
      context.reportError(new GraphQLError(message, { nodes: node }));
    },
  };
}

/**
 * graphql-js limits how deep introspection goes (`MaxIntrospectionDepthRule`), but aliases in
 * fragments multiply there: 1,430 bytes would take 35 seconds. No tool names these fields anew.
 */
function refuseIntrospectionAliases(context: ValidationContext): ASTVisitor {
  return {
    Field(node) {
      const type = context.getParentType();
      const isBelow = type != null && isIntrospectionType(type);
      if (node.alias === undefined || !(isBelow || node.name.value === '__schema')) return;
      const message = 'The field __schema, and any below it or __type, must not have an alias.';
      context.reportError(new GraphQLError(message, { nodes: node }));
    },
  };
}

const rules = [...specifiedRules, refuseConditionalSubscriptions, refuseIntrospectionAliases];

function readDocument(text: string, schema: GraphQLSchema, limits: Config): ValidDocument {
  let code: 'GRAPHQL_PARSE_FAILED' | 'GRAPHQL_VALIDATION_FAILED' = 'GRAPHQL_PARSE_FAILED';
  try {
    checkText(text);
    const document = parse(text, { maxTokens: limits.graphqlTokensMax, maxComments: commentsMax });
    code = 'GRAPHQL_VALIDATION_FAILED';
    checkDocument(document, limits);
    const options = { maxErrors: errorsMax, hideSuggestions: true };
    const errors = validate(schema, document, rules, options);
    if (errors.length > 0)
      throw new RequestError(errors.map((error) => toRequestError(error, code)));
    return { document, shared: withoutOwnArguments(schema, document) };
  } catch (error) {
    if (error instanceof GraphQLError) throw new RequestError([toRequestError(error, code)]);
    // The document is nested deeper than the stack allows: the configured limits are too high.
    if (error instanceof RangeError)
      throw refuseRequest(code, 'The document is nested too deeply.');
    throw error;
  }
}
