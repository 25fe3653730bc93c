/**
 * What records take in a result: objects, and bytes of JSON. Texts are measured only when a result
 * comes near its limit, because that takes as long as making their JSON.
 */

import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import { collectFields } from './documents/limits.ts';

/** The part of a resolver's `info` that describes its selection. */
export type Selection = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>;

/** The selected fields of one object. */
export interface Shape {
  readonly bytes: number;
  /** The texts of any length among them; one is named again for each alias. */
  readonly texts: readonly string[];
}

/** Members of any length. `title` carries `@uppercase`, which can triple a text: `ΐ` (U+0390). */
const textMembers: ReadonlySet<string> = new Set(['title', 'content']);
/** JSON of a field without a long text, and its approximate memory, in bytes. */
const fieldBytes = 48;
/** Of these: for what is beside its name. */
const valueBytes = 41;
/** Of these: for a short text. */
const shortBytes = 32;

/** Selections have a cached shape, because documents are cached and run again. */
export function createShapes(): (selection: Selection) => Shape {
  const known = new WeakMap<FieldNode, Shape>();
  const shapeOf = (node: FieldNode, fragments: Selection['fragments']): Shape => {
    const found = known.get(node);
    if (found !== undefined) return found;
    let bytes = 0;
    const texts: string[] = [];
    const sets = node.selectionSet ? [node.selectionSet] : [];
    for (const [name, [field]] of collectFields(sets, fragments)) {
      bytes += Math.max(fieldBytes, valueBytes + name.length);
      if (field !== undefined && textMembers.has(field.name.value)) texts.push(field.name.value);
    }
    const shape = { bytes, texts };
    known.set(node, shape);
    return shape;
  };
  return ({ fieldNodes, fragments }) => {
    const [node] = fieldNodes;
    if (node !== undefined && fieldNodes.length === 1) return shapeOf(node, fragments);
    const shapes = fieldNodes.map((node) => shapeOf(node, fragments));
    return {
      bytes: shapes.reduce((sum, { bytes }) => sum + bytes, 0),
      texts: shapes.flatMap(({ texts }) => texts),
    };
  };
}

/** A character of a text takes at most so many bytes of JSON: `\u0000`, or `ΐ` in upper case. */
const characterBytesMax = 6;

/** Records of a result, such as those of one list. */
export class Portion {
  objects = 0;
  /** JSON in bytes, without the texts that were not measured. */
  bytes = 0;
  /** Texts of records that were read for this request alone. */
  recordBytes = 0;
  /** Approximate memory, with these records. */
  memory = 0;
  #length = 0;
  #unmeasured: { readonly records: readonly object[]; readonly names: Shape['texts'] }[] = [];

  /** The most that its JSON can take. */
  get bytesMax(): number {
    return this.bytes + characterBytesMax * this.#length;
  }

  add(objects: number, bytes: number): void {
    this.objects += objects;
    this.bytes += bytes;
    this.memory += bytes;
  }

  /** Adds these texts of records. */
  addTexts(records: readonly object[], names: Shape['texts']): void {
    let length = 0;
    for (const record of records) for (const name of names) length += textOf(record, name).length;
    if (length === 0) return;
    this.#length += length;
    this.memory += length;
    this.#unmeasured.push({ records, names });
  }

  addPortion(other: Portion): void {
    this.add(other.objects, other.bytes);
    this.#length += other.#length;
    this.#unmeasured.push(...other.#unmeasured);
  }

  /** Measures the texts, until all takes more than `bytesMax`. Returns the bytes. */
  measure(bytesMax = Number.POSITIVE_INFINITY): number {
    for (const { records, names } of this.#unmeasured.splice(0)) {
      for (const record of records) {
        for (const name of names) this.bytes += bytesOf(textOf(record, name), name === 'title');
        if (this.bytes > bytesMax) return this.bytes;
      }
    }
    this.#length = 0;
    return this.bytes;
  }
}

function textOf(record: object, name: string): string {
  const value = (record as Readonly<Record<string, unknown>>)[name]; // an own member, or none
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

/** Returns a function that calls what it is given, when fewer than `max` of them are unsettled. */
export function createGate(max: number) {
  const waiting: (() => void)[] = [];
  let count = 0;
  return <T>(read: () => MaybePromise<T>): MaybePromise<T> => {
    const found = count < max ? read() : turnIn(waiting).then(read);
    if (!isPromise(found)) return found;
    count += 1;
    return found.finally(() => {
      count -= 1;
      waiting.shift()?.();
    });
  };
}

function turnIn(waiting: (() => void)[]): Promise<void> {
  return new Promise((resolve) => void waiting.push(resolve));
}
