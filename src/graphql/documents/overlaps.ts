/**
 * Limits how often a document selects fields with the same response name in one selection set.
 * Validation compares each pair of such fields, and the fields below them, to decide whether they
 * can be merged (GraphQL §5.3.2): its cost is quadratic in what is counted here in linear time.
 */

import {
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
} from 'graphql';

/** The fields of a selection set, by response name. */
type Fields = Map<string, FieldNode[]>;

/** Checks the selections of one document against one limit. */
export class Overlaps {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #max: number;
  #left: number;
  /** Selection sets that were already checked. */
  readonly #checked = new Set<SelectionSetNode>();

  /** `max`: pairs of fields plus selections that may be visited. */
  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>, max: number) {
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
    const fields: Fields = new Map();
    const spread = new Set<string>();
    for (const set of sets) this.#collect(set, fields, spread);
    for (const group of fields.values()) {
      this.#spend((group.length * (group.length - 1)) / 2);
      const inner = group.flatMap(({ selectionSet }) => selectionSet ?? []);
      this.check(inner, levels - 1);
    }
  }

  /** A fragment counts once in a selection set, however often it is spread there. */
  #collect(set: SelectionSetNode, fields: Fields, spread: Set<string>): void {
    this.#spend(set.selections.length);
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value;
        const group = fields.get(name);
        if (group === undefined) fields.set(name, [selection]);
        else group.push(selection);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        this.#collect(selection.selectionSet, fields, spread);
      } else {
        const { value: name } = selection.name;
        const fragment = this.#fragments.get(name);
        if (fragment === undefined || spread.has(name)) continue;
        spread.add(name);
        this.#collect(fragment.selectionSet, fields, spread);
      }
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
