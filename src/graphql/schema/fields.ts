/** How many fields an operation asks for of one object: for what its result takes in memory. */

import { type FieldNode, type GraphQLResolveInfo, Kind, type SelectionSetNode } from 'graphql';

/** What a resolver knows of the selection on what it gives. */
export type Selection = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>;
type Fragments = Selection['fragments'];

/** Fields of each object, those of fragments too; one that is asked for twice counts twice. */
export type CountFields = (selection: Selection) => number;

/** Remembers what was counted: documents are kept, and asked for again and again. */
export function createFieldCounts(): CountFields {
  const counts = new WeakMap<FieldNode, number>();
  return ({ fieldNodes, fragments }) => {
    let fields = 0;
    for (const node of fieldNodes) {
      let count = counts.get(node);
      if (count === undefined) {
        count = countIn(node.selectionSet, fragments, new Set());
        counts.set(node, count);
      }
      fields += count;
    }
    return fields;
  };
}

/** `seen`: names of fragments, each of which adds its fields once. */
function countIn(
  set: SelectionSetNode | undefined,
  fragments: Fragments,
  seen: Set<string>,
): number {
  let fields = 0;
  for (const selection of set?.selections ?? []) {
    if (selection.kind === Kind.FIELD) fields += 1;
    else if (selection.kind === Kind.INLINE_FRAGMENT) {
      fields += countIn(selection.selectionSet, fragments, seen);
    } else if (!seen.has(selection.name.value)) {
      seen.add(selection.name.value);
      fields += countIn(fragments[selection.name.value]?.selectionSet, fragments, seen);
    }
  }
  return fields;
}
