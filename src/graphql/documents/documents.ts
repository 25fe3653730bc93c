/**
 * Texts → documents that can run: parsed, within the limits, valid. Recent documents are
 * cached: validation is the costliest step of a small request.
 */

import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  parse,
  validate,
} from 'graphql';
import { documentsKeptMax } from '../../config-limits.ts';
import { errorsMax, type GraphqlError, toPlainError, toRequestError } from '../errors.ts';
import { type DocumentLimits, type DocumentMeasures, measureDocument } from './limits.ts';
import { createTextCache } from './text-cache.ts';

export interface ValidDocument {
  readonly kind: 'valid';
  readonly document: DocumentNode;
  readonly operations: readonly OperationDefinitionNode[];
  readonly measures: DocumentMeasures;
}

export interface InvalidDocument {
  readonly kind: 'invalid';
  readonly errors: readonly GraphqlError[];
}

export interface Documents {
  /** Never throws, whatever the text is. */
  read(text: string): ValidDocument | InvalidDocument;
}

/** The average length, in characters, that cached documents may have. */
const textLengthAverage = 256;
/** Comments are not counted as tokens. */
const commentsMax = 1_000;

export function createDocuments(schema: GraphQLSchema, config: DocumentLimits): Documents {
  const kept = createTextCache<ValidDocument>({
    entriesMax: documentsKeptMax,
    lengthMax: documentsKeptMax * textLengthAverage,
  });
  return {
    read(text) {
      const known = kept.get(text);
      if (known !== undefined) return known;
      const found = readAnew(text, schema, config);
      if (found.kind === 'valid') kept.set(text, found, text.length);
      return found;
    },
  };
}

function readAnew(
  text: string,
  schema: GraphQLSchema,
  config: DocumentLimits,
): ValidDocument | InvalidDocument {
  let document: DocumentNode | undefined;
  try {
    document = parse(text, { maxTokens: config.graphqlTokensMax, maxComments: commentsMax });
    const measures = measureDocument(document, config);
    const errors = validate(schema, document, undefined, {
      maxErrors: errorsMax,
      hideSuggestions: true,
    });
    if (errors.length > 0) return invalid(errors);
    const operations = document.definitions.filter(
      (definition) => definition.kind === Kind.OPERATION_DEFINITION,
    );
    return { kind: 'valid', document, operations, measures };
  } catch (error) {
    const code = document === undefined ? 'GRAPHQL_PARSE_FAILED' : 'GRAPHQL_VALIDATION_FAILED';
    if (error instanceof GraphQLError) {
      return { kind: 'invalid', errors: [toRequestError(error, code)] };
    }
    // The text is deeper than the stack: the limits are set higher than the process can bear.
    if (error instanceof RangeError) {
      return {
        kind: 'invalid',
        errors: [toPlainError(code, 'The document is nested too deeply.')],
      };
    }
    throw error;
  }
}

function invalid(errors: readonly GraphQLError[]): InvalidDocument {
  const found = errors.map((error) => toRequestError(error, 'GRAPHQL_VALIDATION_FAILED'));
  return { kind: 'invalid', errors: found };
}
