/**
 * Turns texts into documents that are parsed, within the limits and valid. Recent documents are
 * cached, because validation is the most expensive step of a small request.
 */

import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  parse,
  TokenKind,
  validate,
} from 'graphql';
import { BoundedMap } from '../../bounded-map.ts';
import { documentsBytesMax } from '../../config.ts';
import { errorsMax, refuseRequest, RequestError, toRequestError } from '../errors.ts';
import { countIntrospection } from './introspection.ts';
import { checkDocument, checkText, type DocumentLimits } from './limits.ts';

export interface ValidDocument {
  readonly document: DocumentNode;
  /** Objects that introspection adds to the result of an operation. */
  readonly introspectionObjects: number;
}

/** A limit of its own, because comments are not counted as tokens. */
const commentsMax = 1_000;

/** The returned function throws a RequestError for an invalid document. */
export function createDocuments(
  schema: GraphQLSchema,
  limits: DocumentLimits,
): (text: string) => ValidDocument {
  const cache = new BoundedMap<ValidDocument>(documentsBytesMax);
  return (text) => {
    const known = cache.use(text);
    if (known !== undefined) return known;
    const valid = readDocument(text, schema, limits);
    cache.set(text, valid, bytesOfDocument(valid.document));
    return valid;
  };
}

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

function readDocument(text: string, schema: GraphQLSchema, limits: DocumentLimits): ValidDocument {
  let code: 'GRAPHQL_PARSE_FAILED' | 'GRAPHQL_VALIDATION_FAILED' = 'GRAPHQL_PARSE_FAILED';
  try {
    checkText(text);
    const document = parse(text, { maxTokens: limits.graphqlTokensMax, maxComments: commentsMax });
    code = 'GRAPHQL_VALIDATION_FAILED';
    checkDocument(document, limits);
    const options = { maxErrors: errorsMax, hideSuggestions: true };
    const errors = validate(schema, document, undefined, options);
    if (errors.length > 0)
      throw new RequestError(errors.map((error) => toRequestError(error, code)));
    const introspectionObjects = countIntrospection(schema, document, limits.graphqlObjectsMax);
    return { document, introspectionObjects };
  } catch (error) {
    if (error instanceof GraphQLError) throw new RequestError([toRequestError(error, code)]);
    // The document is nested deeper than the stack allows: the configured limits are too high.
    if (error instanceof RangeError)
      throw refuseRequest(code, 'The document is nested too deeply.');
    throw error;
  }
}
