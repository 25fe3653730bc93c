/**
 * Limits on documents and variables, checked before validation, whose cost can grow faster than the
 * size of the request. These checks take linear time, because each fragment is counted once.
 */

import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Config } from '../../config.ts';
import { Overlaps } from './overlaps.ts';
import { UploadedFile } from '../schema/uploaded-file.ts';

export type DocumentLimits = Pick<Config, 'graphqlTokensMax' | 'graphqlDepthMax'>;

/** For each document: every alias can repeat an expensive field. */
export const aliasesMax = 50;
/** Each record of a list repeats it in the JSON, and every error in its path. */
const aliasLengthMax = 128;
/** For each document: only `@skip` and `@include` exist, and validation compares them pairwise. */
export const directivesMax = 50;
/** For the variables of an operation, nested values included: each is coerced and checked. */
const variableValuesMax = 1_000;

/** Pairs of fields that may be compared, for each token that a document may have. */
const pairsPerToken = 2;

/** What a document contains of everything that is limited. */
export interface DocumentMeasures {
  /** Nested fields of the deepest operation, including those of fragments. */
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** Fields of introspection (`__schema`, `__type`). */
  readonly introspections: number;
}

/** Throws a GraphQLError for a document beyond a limit, and RangeError for one too deep to walk. */
export function measureDocument(document: DocumentNode, limits: DocumentLimits): DocumentMeasures {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
  }
  const walk = new Walk(fragments);
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) walk.operation(definition.selectionSet);
    if ('directives' in definition) walk.directives += definition.directives?.length ?? 0;
  }
  const { depth, aliases, directives, introspections } = walk;
  check('levels', depth, limits.graphqlDepthMax);
  check('aliases', aliases, aliasesMax);
  check('characters in an alias', walk.aliasLength, aliasLengthMax);
  check('directives', directives, directivesMax);
  const overlaps = new Overlaps(fragments, limits.graphqlTokensMax * pairsPerToken);
  for (const definition of document.definitions) {
    if ('selectionSet' in definition) {
      overlaps.check([definition.selectionSet], limits.graphqlDepthMax);
    }
  }
  return { depth, aliases, directives, introspections };
}

/**
 * True if the variables hold more values than allowed, nested values included. Their depth was
 * limited when they were parsed (R10).
 */
export function hasTooManyValues(variables: unknown): boolean {
  return countValues(variables, variableValuesMax) > variableValuesMax;
}

/** Stops counting at one more than `max`. */
function countValues(value: unknown, max: number): number {
  let count = 1;
  if (typeof value !== 'object' || value === null || value instanceof UploadedFile) return count;
  for (const member of Object.values(value)) {
    count += countValues(member, max - count);
    if (count > max) break;
  }
  return count;
}

function check(what: string, found: number, max: number): void {
  if (found > max) {
    throw new GraphQLError(`The document has ${found} ${what}; at most ${max} are allowed.`);
  }
}

class Walk {
  depth = 0;
  aliases = 0;
  aliasLength = 0;
  directives = 0;
  introspections = 0;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** The levels of each fragment; 0 during its own walk, so that a cycle of fragments ends. */
  readonly #levels = new Map<string, number>();

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#fragments = fragments;
  }

  operation(selections: SelectionSetNode): void {
    this.depth = Math.max(this.depth, this.#levelsOf(selections));
  }

  #levelsOf(selections: SelectionSetNode | undefined): number {
    let levels = 0;
    for (const selection of selections?.selections ?? []) {
      levels = Math.max(levels, this.#levelsOfSelection(selection));
    }
    return levels;
  }

  #levelsOfSelection(selection: SelectionNode): number {
    this.directives += selection.directives?.length ?? 0;
    if (selection.kind === Kind.INLINE_FRAGMENT) return this.#levelsOf(selection.selectionSet);
    if (selection.kind === Kind.FRAGMENT_SPREAD)
      return this.#levelsOfFragment(selection.name.value);
    if (selection.alias !== undefined) {
      this.aliases += 1;
      this.aliasLength = Math.max(this.aliasLength, selection.alias.value.length);
    }
    const name = selection.name.value;
    if (name === '__schema' || name === '__type') this.introspections += 1;
    return 1 + this.#levelsOf(selection.selectionSet);
  }

  #levelsOfFragment(name: string): number {
    const known = this.#levels.get(name);
    if (known !== undefined) return known;
    this.#levels.set(name, 0);
    const levels = this.#levelsOf(this.#fragments.get(name)?.selectionSet);
    this.#levels.set(name, levels);
    return levels;
  }
}

/** Objects in a complete introspection result. */
const objectsOfSchema = 500;
/** Approximate memory of one of them, in bytes. */
const objectOfSchemaBytes = 128;
/** Introspection fields can nest lists this deep. */
const listsOfSchemaMax = 3;

/** graphql-js resolves introspection: the most that aliases can make of it is charged first. */
export function measureIntrospection({ introspections, aliases }: DocumentMeasures) {
  const objects = introspections * objectsOfSchema * (1 + aliases) ** listsOfSchemaMax;
  return { objects, bytes: objects * objectOfSchemaBytes };
}
