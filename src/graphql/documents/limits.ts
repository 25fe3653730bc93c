/**
 * What a document may ask for, checked before validation, whose cost can grow faster than the size
 * of the request. The checks take linear time, because each fragment is counted once.
 *
 * 1. The text: line ends. 2. The parsed document: levels, aliases, directives. 3. Fields with the
 * same response name, which validation compares in pairs:
 *
 *     { a: title a: title a: title  b { c } b { c } }: 5 selections, 3 pairs of `a`, 1 pair of `b`;
 *     below `b`: 2 selections, 1 pair of `c`; 12 in all, and two for each token are allowed
 */

import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLResolveInfo,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Config } from '../../config.ts';

/** Line ends of a text (R39): graphql-js counts them again for every error that it locates. */
const lineEndsMax = 10_000;
/** For each document: every alias can repeat an expensive field. */
const aliasesMax = 50;
/** Each record of a list repeats the alias in the JSON, and every error in its path. */
const aliasLengthMax = 128;
/** For each document: only `@skip` and `@include` exist, and validation compares them pairwise. */
const directivesMax = 50;

/** Throws a GraphQLError for a text that must not be parsed. */
export function checkText(text: string): void {
  let lineEnds = 0;
  for (let at = 0; text.length > lineEndsMax && at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x0a || code === 0x0d) lineEnds += 1;
  }
  check('line ends', lineEnds, lineEndsMax);
}

/** Throws a GraphQLError for a document beyond a limit, and RangeError for one too deep to walk. */
export function checkDocument(document: DocumentNode, limits: Config): void {
  const fragments = findFragments(document);
  const { levels, aliases, aliasLength, directives } = measure(document, fragments);
  check('levels', levels, limits.graphqlDepthMax);
  check('aliases', aliases, aliasesMax);
  check('characters in an alias', aliasLength, aliasLengthMax);
  check('directives', directives, directivesMax);
  checkOverlaps(document, fragments, limits);
}

function check(what: string, count: number, max: number): void {
  if (count > max) {
    throw new GraphQLError(`The document has ${count} ${what}; at most ${max} are allowed.`);
  }
}

function measure(document: DocumentNode, fragments: Fragments) {
  const counts = { levels: 0, aliases: 0, aliasLength: 0, directives: 0 };
  /** The levels of each fragment; 0 during its own walk, so that a cycle of fragments ends. */
  const levelsOfFragment = new Map<string, number>();
  const levelsIn = (set: SelectionSetNode | undefined): number => {
    let levels = 0;
    for (const selection of set?.selections ?? []) levels = Math.max(levels, levelsOf(selection));
    return levels;
  };
  const levelsOf = (selection: SelectionNode): number => {
    counts.directives += selection.directives?.length ?? 0;
    if (selection.kind === Kind.INLINE_FRAGMENT) return levelsIn(selection.selectionSet);
    if (selection.kind === Kind.FIELD) {
      const { alias, selectionSet } = selection;
      if (alias !== undefined) counts.aliases += 1;
      counts.aliasLength = Math.max(counts.aliasLength, alias?.value.length ?? 0);
      return 1 + levelsIn(selectionSet);
    }
    const name = selection.name.value;
    if (!levelsOfFragment.has(name)) {
      levelsOfFragment.set(name, 0);
      levelsOfFragment.set(name, levelsIn(fragments[name]?.selectionSet));
    }
    return levelsOfFragment.get(name) ?? 0;
  };
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) {
      counts.levels = Math.max(counts.levels, levelsIn(definition.selectionSet));
    }
    if ('directives' in definition) counts.directives += definition.directives?.length ?? 0;
  }
  return counts;
}

/** Pairs of fields that may be compared, for each token that a document may have. */
const pairsPerToken = 2;
/** Characters of arguments whose printing takes as long as the rest of comparing two fields. */
const charactersPerPair = 512;

/**
 * Limits how often a document selects fields with the same response name in one selection set.
 * Validation compares each pair of such fields, and the fields below them, to decide whether they
 * can be merged (GraphQL §5.3.2): its cost is quadratic in what is counted here in linear time.
 */
function checkOverlaps(document: DocumentNode, fragments: Fragments, limits: Config): void {
  const max = limits.graphqlTokensMax * pairsPerToken;
  let pairs = 0;
  const checked = new Set<SelectionSetNode>();
  /** Down to `levels` of nested fields: a cycle of fragments is reported elsewhere. */
  const checkMerged = (sets: readonly SelectionSetNode[], levels: number): void => {
    const [first] = sets;
    if (first === undefined || levels === 0 || (sets.length === 1 && checked.has(first))) return;
    if (sets.length === 1) checked.add(first);
    const visit = (set: SelectionSetNode): void => void (pairs += set.selections.length);
    for (const group of collectFields(sets, fragments, visit).values()) {
      // To compare arguments, both are printed for each pair.
      const printing = group.reduce(addArguments, 0) / charactersPerPair;
      pairs += (group.length - 1) * (group.length / 2 + printing);
      if (pairs > max) {
        const message = `The document asks too often for the same fields: at most ${max} pairs`;
        throw new GraphQLError(`${message} are compared.`);
      }
      checkMerged(selectionsOf(group), levels - 1);
    }
  };
  for (const definition of document.definitions) {
    if ('selectionSet' in definition) {
      checkMerged([definition.selectionSet], limits.graphqlDepthMax);
    }
  }
}

/** Adds the length of a field's arguments in the document to `sum`. */
function addArguments(sum: number, { arguments: values = [] }: FieldNode): number {
  return sum + (values.at(-1)?.loc?.end ?? 0) - (values[0]?.loc?.start ?? 0);
}

type Fragments = GraphQLResolveInfo['fragments'];

/** The fragments of a document by name, without a prototype: names are the client's. */
export function findFragments({ definitions }: DocumentNode): Fragments {
  const fragments = Object.create(null) as Record<string, FragmentDefinitionNode>;
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
  }
  return fragments;
}

/**
 * Returns the fields of merged selection sets by response name (GraphQL §6.3.2). A fragment counts
 * once, however often it is spread there. `visit` is called with each set.
 */
export function collectFields(
  sets: readonly SelectionSetNode[],
  fragments: Fragments,
  visit?: (set: SelectionSetNode) => void,
): ReadonlyMap<string, readonly FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const collect = (set: SelectionSetNode | undefined): void => {
    if (set !== undefined) visit?.(set);
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value;
        const group = fields.get(name);
        if (group === undefined) fields.set(name, [selection]);
        else group.push(selection);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        collect(selection.selectionSet);
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        collect(fragments[selection.name.value]?.selectionSet);
      }
    }
  };
  sets.forEach(collect);
  return fields;
}

/** The selection sets of fields with the same response name. */
function selectionsOf(fields: readonly FieldNode[]): readonly SelectionSetNode[] {
  return fields.flatMap(({ selectionSet }) => selectionSet ?? []);
}
