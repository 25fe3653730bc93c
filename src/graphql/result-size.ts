/**
 * What a selection takes in a result, counted before it is resolved. A record costs one object, and
 * with it all that is resolved for it, whether there is anything or not:
 *
 *     each object inside it   1, and what is inside that one
 *     each list inside it     10, at least: to read an empty one takes as long as ten objects
 *     each field              48 bytes; titles and contents count as their JSON beside
 *
 *     allPosts { title author { id posts { id } } comments { id } }
 *     a post: 1 + (1 + 10) + 10 = 22 objects, 5 fields; the rest of its lists later
 */

import {
  type FieldNode,
  getNamedType,
  getNullableType,
  type GraphQLResolveInfo,
  isListType,
  isObjectType,
} from 'graphql';
import { collectFields } from './documents/limits.ts';

/** The part of a resolver's `info` that describes what is selected of its result. */
export type Selection = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments' | 'returnType'>;

/** One object with its selected fields. */
export interface Shape {
  readonly objects: number;
  readonly bytes: number;
  /** How often its members of any length are selected, under several aliases. */
  readonly titles: number;
  readonly contents: number;
}

/** A record, as far as it has them. */
interface Texts {
  readonly title?: unknown;
  readonly content?: unknown;
}

/** The objects that a list counts as, at least. */
export const listObjects = 10;
/** JSON of a field without a long text, and its approximate memory, in bytes. */
const fieldBytes = 48;
/** The part of these that is not the name. */
const valueBytes = 41;

/** Returns a function that finds the shape of a selection. Shapes are cached, as documents are. */
export function createShapes(): (selection: Selection) => Shape {
  const cache = new WeakMap<FieldNode | readonly FieldNode[], Shape>();
  return (selection) => {
    const { fieldNodes } = selection;
    // A node can be merged with others in one place and stand alone in another. The array of merged
    // ones is the same for all records of a list.
    const key = fieldNodes.length === 1 && fieldNodes[0] ? fieldNodes[0] : fieldNodes;
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const shape = measure(selection);
    cache.set(key, shape);
    return shape;
  };
}

function measure({ fieldNodes, fragments, returnType }: Selection): Shape {
  const type = getNamedType(returnType);
  const fields = isObjectType(type) ? type.getFields() : {};
  const shape = { objects: 1, bytes: 0, titles: 0, contents: 0 };
  const sets = fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  for (const [name, nodes] of collectFields(sets, fragments)) {
    shape.bytes += Math.max(fieldBytes, valueBytes + name.length);
    const field = nodes[0]?.name.value ?? '';
    if (field === 'title') shape.titles += 1;
    if (field === 'content') shape.contents += 1;
    const inner = fields[field]?.type;
    if (isObjectType(getNamedType(inner)) && inner !== undefined) {
      if (isListType(getNullableType(inner))) {
        shape.objects += listObjects;
      } else {
        const object = measure({ fieldNodes: nodes, fragments, returnType: inner });
        shape.objects += object.objects;
        shape.bytes += object.bytes;
      }
    }
  }
  return shape;
}

/** The bytes that the selected texts of records take in JSON, measured up to `bytesMax`. */
export function textBytesOf(
  records: readonly Texts[],
  { titles, contents }: Shape,
  bytesMax: number,
): number {
  let bytes = 0;
  if (titles + contents === 0) return bytes;
  for (const { title, content } of records) {
    if (titles > 0) bytes += titles * bytesOf(title);
    if (contents > 0) bytes += contents * bytesOf(content);
    if (bytes > bytesMax) break;
  }
  return bytes;
}

/** A shorter text counts as its characters: to measure it takes as long as to resolve it. */
const measuredLength = 64;

function bytesOf(text: unknown): number {
  if (typeof text !== 'string') return 0;
  return text.length < measuredLength ? text.length : Buffer.byteLength(JSON.stringify(text));
}

/** The characters of all texts of records. */
export function lengthOf(records: readonly object[]): number {
  let length = 0;
  for (const record of records as readonly Readonly<Record<string, unknown>>[]) {
    for (const name in record) {
      const value = record[name];
      if (typeof value === 'string') length += value.length;
    }
  }
  return length;
}
