/**
 * What records take in a result: objects, and bytes of JSON.
 *
 * 1. The fields of a record count as 48 bytes each, whatever their name and value.
 * 2. Titles and contents can have any length. They count as six bytes a character, which is the
 *    most that one takes in JSON, until that exceeds a limit.
 * 3. Only then are they measured, because this takes as long as making their JSON.
 *
 *     100 posts { id title }, titles of 20 characters: at most 100 * 96 + 2,000 * 6 = 21,600 bytes
 *     limit 4 MiB: fits, nothing is measured; limit 20,000: the titles are measured, 9,600 bytes
 */

import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import { collectFields } from './documents/limits.ts';

/** The part of a resolver's `info` that describes its selection. */
export type Selection = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>;

/** The selected fields of one object. */
export interface Shape {
  readonly bytes: number;
  /** How often the members of any length are selected, under several aliases. */
  readonly titles: number;
  readonly contents: number;
}

/** A record, as far as it has them. `title` carries `@uppercase`. */
interface Texts {
  readonly title?: unknown;
  readonly content?: unknown;
}

/** JSON of a field without a long text, and its approximate memory, in bytes. */
const fieldBytes = 48;
/** The part of these that is not the name. */
const valueBytes = 41;
/** The part of these that is for a short text. */
const shortBytes = 32;

/** Returns a function that finds the shape of a selection. Shapes are cached, as documents are. */
export function createShapes(): (selection: Selection) => Shape {
  const cache = new WeakMap<FieldNode, Shape>();
  const shapeOf = (node: FieldNode, fragments: Selection['fragments']): Shape => {
    const cached = cache.get(node);
    if (cached !== undefined) return cached;
    const shape = { bytes: 0, titles: 0, contents: 0 };
    const sets = node.selectionSet ? [node.selectionSet] : [];
    for (const [name, [field]] of collectFields(sets, fragments)) {
      shape.bytes += Math.max(fieldBytes, valueBytes + name.length);
      if (field?.name.value === 'title') shape.titles += 1;
      if (field?.name.value === 'content') shape.contents += 1;
    }
    cache.set(node, shape);
    return shape;
  };
  return ({ fieldNodes, fragments }) => {
    const [only] = fieldNodes;
    if (only !== undefined && fieldNodes.length === 1) return shapeOf(only, fragments);
    const shapes = fieldNodes.map((node) => shapeOf(node, fragments));
    return shapes.reduce((sum, { bytes, titles, contents }) => ({
      bytes: sum.bytes + bytes,
      titles: sum.titles + titles,
      contents: sum.contents + contents,
    }));
  };
}

/** A character of a text takes at most so many bytes of JSON: `\u0000`, or `ΐ` in upper case. */
const characterBytesMax = 6;

/** The size of some records of a result, such as those of one list. */
export class ResultSize {
  objects = 0;
  /** JSON in bytes, without the texts that were not measured. */
  bytes = 0;
  /** The memory that was counted for the records, if these are a list … */
  memory = 0;
  /** … and the part of it that records take which were read for this request alone. */
  recordBytes = 0;
  /** The characters of texts that were not measured, and their records. */
  #length = 0;
  #unmeasured: { readonly records: readonly Texts[]; readonly shape: Shape }[] | undefined;

  /** The most bytes that the JSON of the records can take. */
  get bytesMax(): number {
    return this.bytes + characterBytesMax * this.#length;
  }

  add(objects: number, bytes: number): void {
    this.objects += objects;
    this.bytes += bytes;
  }

  /** Adds records with their selected fields. Returns their approximate memory. */
  addRecords(records: readonly Texts[], shape: Shape): number {
    const bytes = records.length * shape.bytes;
    this.add(records.length, bytes);
    return bytes + this.addTexts(records, shape);
  }

  /** Adds the selected texts of records. Returns their length. */
  addTexts(records: readonly Texts[], shape: Shape): number {
    const { titles, contents } = shape;
    if (titles + contents === 0) return 0;
    let length = 0;
    for (const record of records) {
      if (titles > 0) length += titles * toText(record.title).length;
      if (contents > 0) length += contents * toText(record.content).length;
    }
    this.#length += length;
    if (length > 0) (this.#unmeasured ??= []).push({ records, shape });
    return length;
  }

  addSize(other: ResultSize): void {
    this.add(other.objects, other.bytes);
    this.#length += other.#length;
    if (other.#unmeasured) (this.#unmeasured ??= []).push(...other.#unmeasured);
  }

  /** Measures the texts, until all takes more than `bytesMax`. Returns the bytes. */
  measure(bytesMax = Number.POSITIVE_INFINITY): number {
    for (const { records, shape } of this.#unmeasured?.splice(0) ?? []) {
      for (const { title, content } of records) {
        if (shape.titles > 0) this.bytes += shape.titles * bytesOf(toText(title), true);
        if (shape.contents > 0) this.bytes += shape.contents * bytesOf(toText(content), false);
        if (this.bytes > bytesMax) return this.bytes;
      }
    }
    this.#length = 0;
    return this.bytes;
  }
}

/** The characters of all texts of records. */
export function lengthOf(records: readonly object[]): number {
  let length = 0;
  for (const record of records as readonly Readonly<Record<string, unknown>>[]) {
    for (const name in record) length += toText(record[name]).length;
  }
  return length;
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A longer text is not made in upper case to measure it, but counts as three times its size. */
const upperLengthMax = 1_000;

/** The JSON of a text, without what is part of its field. */
function bytesOf(text: string, isUpper: boolean): number {
  const isLong = text.length > upperLengthMax;
  const bytes = Buffer.byteLength(JSON.stringify(isUpper && !isLong ? text.toUpperCase() : text));
  return isUpper && isLong ? 3 * bytes : Math.max(0, bytes - shortBytes);
}
