/**
 * Turns texts into documents that are parsed, within the limits and valid. Recent documents are
 * cached, because validation is the most expensive step of a small request.
 */

import { type DocumentNode, GraphQLError, type GraphQLSchema, parse, validate } from 'graphql';
import { BoundedMap } from '../../bounded-map.ts';
import { documentsKeptMax } from '../../config-limits.ts';
import { errorsMax, refuseRequest, RequestError, toRequestError } from '../errors.ts';
import { type DocumentLimits, type DocumentMeasures, measureDocument } from './limits.ts';

export interface ValidDocument {
  readonly document: DocumentNode;
  readonly measures: DocumentMeasures;
}

/** The average length of the cached documents, in characters, for which the cache has room. */
const textLengthAverage = 256;
/** A limit of its own, because comments are not counted as tokens. */
const commentsMax = 1_000;

/** The returned function throws a RequestError for an invalid document. */
export function createDocuments(
  schema: GraphQLSchema,
  limits: DocumentLimits,
): (text: string) => ValidDocument {
  const kept = new BoundedMap<ValidDocument>(documentsKeptMax * textLengthAverage);
  return (text) => {
    const known = kept.use(text);
    if (known !== undefined) return known;
    const valid = readDocument(text, schema, limits);
    kept.set(text, valid, Math.max(text.length, textLengthAverage));
    return valid;
  };
}

function readDocument(text: string, schema: GraphQLSchema, limits: DocumentLimits): ValidDocument {
  let code: 'GRAPHQL_PARSE_FAILED' | 'GRAPHQL_VALIDATION_FAILED' = 'GRAPHQL_PARSE_FAILED';
  try {
    const document = parse(text, { maxTokens: limits.graphqlTokensMax, maxComments: commentsMax });
    code = 'GRAPHQL_VALIDATION_FAILED';
    const measures = measureDocument(document, limits);
    const options = { maxErrors: errorsMax, hideSuggestions: true };
    const errors = validate(schema, document, undefined, options);
    if (errors.length === 0) return { document, measures };
    throw new RequestError(errors.map((error) => toRequestError(error, code)));
  } catch (error) {
    if (error instanceof GraphQLError) throw new RequestError([toRequestError(error, code)]);
    // The document is nested deeper than the stack allows: the configured limits are too high.
    if (error instanceof RangeError)
      throw refuseRequest(code, 'The document is nested too deeply.');
    throw error;
  }
}
