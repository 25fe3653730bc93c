/**
 * Limits on documents, checked before validation, whose cost can grow faster than the
 * size of the request. These checks take linear time, because each fragment is counted once.
 */

import {
  type DocumentNode,
  GraphQLError,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Config } from '../../config.ts';
import { findFragments, type Fragments, Overlaps } from './overlaps.ts';

export type DocumentLimits = Pick<
  Config,
  'graphqlTokensMax' | 'graphqlDepthMax' | 'graphqlObjectsMax'
>;

/** Line ends of a text (R39): graphql-js counts them again for every error that it locates. */
const lineEndsMax = 10_000;

/** Throws a GraphQLError for a text that must not be parsed. */
export function checkText(text: string): void {
  let lineEnds = 0;
  for (let at = 0; text.length > lineEndsMax && at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x0a || code === 0x0d) lineEnds += 1;
  }
  check('line ends', lineEnds, lineEndsMax);
}

/** For each document: every alias can repeat an expensive field. */
const aliasesMax = 50;
/** Each record of a list repeats it in the JSON, and every error in its path. */
const aliasLengthMax = 128;
/** For each document: only `@skip` and `@include` exist, and validation compares them pairwise. */
const directivesMax = 50;

/** Pairs of fields that may be compared, for each token that a document may have. */
const pairsPerToken = 2;

/** Throws a GraphQLError for a document beyond a limit, and RangeError for one too deep to walk. */
export function checkDocument(document: DocumentNode, limits: DocumentLimits): void {
  const fragments = findFragments(document);
  const walk = new Walk(fragments);
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) walk.operation(definition.selectionSet);
    if ('directives' in definition) walk.directives += definition.directives?.length ?? 0;
  }
  check('levels', walk.depth, limits.graphqlDepthMax);
  check('aliases', walk.aliases, aliasesMax);
  check('characters in an alias', walk.aliasLength, aliasLengthMax);
  check('directives', walk.directives, directivesMax);
  const overlaps = new Overlaps(fragments, limits.graphqlTokensMax * pairsPerToken);
  for (const definition of document.definitions) {
    if ('selectionSet' in definition) {
      overlaps.check([definition.selectionSet], limits.graphqlDepthMax);
    }
  }
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
  readonly #fragments: Fragments;
  /** The levels of each fragment; 0 during its own walk, so that a cycle of fragments ends. */
  readonly #levels = new Map<string, number>();

  constructor(fragments: Fragments) {
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
