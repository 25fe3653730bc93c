/** Counts the selected fields of one object, to estimate the memory of a result. */

import { type FieldNode, type GraphQLResolveInfo, Kind, type SelectionSetNode } from 'graphql';

/** The part of a resolver's `info` that describes its selection. */
export type Selection = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>;
type Fragments = Selection['fragments'];

/** Counts the fields of an object, including those of fragments; a repeated field counts twice. */
export type CountFields = (selection: Selection) => number;

/** Counts are cached, because documents are cached and run again. */
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

/** `seen`: names of fragments; each fragment counts once. */
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
