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
    const shape = { bytes: 0, titles: 0, contents: 0 };
    const sets = node.selectionSet ? [node.selectionSet] : [];
    for (const [name, [field]] of collectFields(sets, fragments)) {
      shape.bytes += Math.max(fieldBytes, valueBytes + name.length);
      if (field?.name.value === 'title') shape.titles += 1;
      if (field?.name.value === 'content') shape.contents += 1;
    }
    known.set(node, shape);
    return shape;
  };
  return ({ fieldNodes, fragments }) => {
    const [only] = fieldNodes;
    if (only !== undefined && fieldNodes.length === 1) return shapeOf(only, fragments);
    return fieldNodes
      .map((node) => shapeOf(node, fragments))
      .reduce((sum, { bytes, titles, contents }) => ({
        bytes: sum.bytes + bytes,
        titles: sum.titles + titles,
        contents: sum.contents + contents,
      }));
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
  #unmeasured: { readonly records: readonly Texts[]; readonly shape: Shape }[] = [];

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
  addTexts(records: readonly Texts[], shape: Shape): void {
    const { titles, contents } = shape;
    let length = 0;
    for (const record of titles + contents > 0 ? records : []) {
      if (titles > 0) length += titles * toText(record.title).length;
      if (contents > 0) length += contents * toText(record.content).length;
    }
    if (length === 0) return;
    this.#length += length;
    this.memory += length;
    this.#unmeasured.push({ records, shape });
  }

  addPortion(other: Portion): void {
    this.add(other.objects, other.bytes);
    this.#length += other.#length;
    this.#unmeasured.push(...other.#unmeasured);
  }

  /** Measures the texts, until all takes more than `bytesMax`. Returns the bytes. */
  measure(bytesMax = Number.POSITIVE_INFINITY): number {
    for (const { records, shape } of this.#unmeasured.splice(0)) {
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

/** Adds the length of the texts of a record to `sum`. */
export function addLengths(sum: number, record: object): number {
  const values = record as Readonly<Record<string, unknown>>; // see `Portion.addTexts`
  let length = sum;
  for (const name in values) {
    if (typeof values[name] === 'string') length += values[name].length;
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

export type Gate = <T>(read: () => MaybePromise<T>) => MaybePromise<T>;

/** Returns a function that calls what it is given, when fewer than `max` of them are unsettled. */
export function createGate(max: number): Gate {
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

/** Places that are held for a time. Each is given in an iteration of the event loop of its own. */
export function createPlaces(max: number) {
  const waiting: (() => void)[] = [];
  let taken = 0;
  let isScheduled = false;
  const giveLater = (): void => {
    if (isScheduled || taken >= max || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      taken += 1;
      waiting.shift()?.();
      giveLater();
    });
  };
  return {
    take(): Promise<void> {
      const given = turnIn(waiting);
      giveLater();
      return given;
    },
    leave: (): void => {
      taken -= 1;
      giveLater();
    },
  };
}
