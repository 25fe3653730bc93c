/**
 * Limits how often a document selects fields with the same response name in one selection set.
 * Validation compares each pair of such fields, and the fields below them, to decide whether they
 * can be merged (GraphQL §5.3.2): its cost is quadratic in what is counted here in linear time.
 */

import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
} from 'graphql';

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** The fragments of a document by name. */
export function findFragments({ definitions }: DocumentNode): Fragments {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
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
  const collect = (set: SelectionSetNode): void => {
    visit?.(set);
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value;
        const group = fields.get(name);
        if (group === undefined) fields.set(name, [selection]);
        else group.push(selection);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        collect(selection.selectionSet);
      } else {
        const { value: name } = selection.name;
        const fragment = fragments.get(name);
        if (fragment === undefined || spread.has(name)) continue;
        spread.add(name);
        collect(fragment.selectionSet);
      }
    }
  };
  sets.forEach(collect);
  return fields;
}

/** The selection sets of fields with the same response name. */
export function selectionsOf(fields: readonly FieldNode[]): readonly SelectionSetNode[] {
  return fields.flatMap(({ selectionSet }) => selectionSet ?? []);
}

/** Characters of arguments whose printing takes as long as the rest of comparing two fields. */
const charactersPerPair = 512;

/** Adds the length of a field's arguments in the document to `sum`. */
function addArguments(sum: number, { arguments: given = [] }: FieldNode): number {
  return sum + (given.at(-1)?.loc?.end ?? 0) - (given[0]?.loc?.start ?? 0);
}

/** Checks the selections of one document against one limit. */
export class Overlaps {
  readonly #fragments: Fragments;
  readonly #max: number;
  #left: number;
  /** Selection sets that were already checked. */
  readonly #checked = new Set<SelectionSetNode>();

  /** `max`: pairs of fields plus selections that may be visited. */
  constructor(fragments: Fragments, max: number) {
    this.#fragments = fragments;
    this.#max = max;
    this.#left = max;
  }

  /**
   * Checks the merged selections of `sets`, down to `levels` of nested fields: a cycle of fragments
   * is reported elsewhere. Throws a GraphQLError if there are too many pairs.
   */
  check(sets: readonly SelectionSetNode[], levels: number): void {
    const [first] = sets;
    if (first === undefined || levels === 0) return;
    if (sets.length === 1) {
      if (this.#checked.has(first)) return;
      this.#checked.add(first);
    }
    const spend = (set: SelectionSetNode): void => this.#spend(set.selections.length);
    for (const group of collectFields(sets, this.#fragments, spend).values()) {
      const others = group.length - 1;
      this.#spend((group.length * others) / 2);
      // To compare arguments, both are printed for each pair.
      this.#spend((group.reduce(addArguments, 0) * others) / charactersPerPair);
      this.check(selectionsOf(group), levels - 1);
    }
  }

  #spend(units: number): void {
    this.#left -= units;
    if (this.#left >= 0) return;
    throw new GraphQLError(
      `The document asks too often for the same fields: at most ${this.#max} pairs are compared.`,
    );
  }
}
