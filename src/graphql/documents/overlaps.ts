/**
 * How often a document selects fields with the same response name in one place. The rule that such
 * fields can be merged (GraphQL §5.3.2) compares each pair of them, and within each pair all that
 * they select: its cost grows with the square of what is counted here in linear time.
 */

import {
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
} from 'graphql';

/** The fields of a place, by their name in the answer. */
type Fields = Map<string, FieldNode[]>;

/** Checks the selections of one document against one limit. */
export class Overlaps {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #max: number;
  #left: number;
  /** Selection sets that were checked already. */
  readonly #checked = new Set<SelectionSetNode>();

  /** `max`: pairs of fields, and selections that are looked at on the way to them. */
  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>, max: number) {
    this.#fragments = fragments;
    this.#max = max;
    this.#left = max;
  }

  /**
   * Looks at what `sets` select together, no more than `levels` of fields deep: a cycle of
   * fragments is for others to find. Throws a GraphQLError where it is too much.
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

  /** A fragment counts once at each place, however often it is spread there. */
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
