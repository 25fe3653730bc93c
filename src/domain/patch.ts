/**
 * The two patch formats (Spec §4.6) as one type. JSON Patch (RFC 6902) is applied by
 * `fast-json-patch`; what that accepts wrongly is refused first: unknown operations, loose pointers
 * and indices, inherited members, unlimited copies. JSON Merge Patch (RFC 7386) is merged by
 * `json-merge-patch`. A patch is validated once, when it is read.
 */

import jsonPatch, { type Operation } from 'fast-json-patch';
import mergePatch from 'json-merge-patch';
import { AppError } from '../errors.ts';
import { isObject } from '../http/json.ts';
import { setMembers } from '../http/json-escaped-names.ts';
import type { Json, JsonObject } from '../store/model.ts';
import {
  copyJson,
  findChild,
  findValue,
  isContainer,
  isEqualJson,
  type JsonPointer,
  parsePointer,
  toIndex,
} from './json-value.ts';

export interface Patch {
  /** Changes the document, and returns it or its replacement, or throws. */
  readonly apply: (document: Json) => Json;
  /** Returns the items of an array that the patch uses; undefined: it may use any. */
  readonly itemsUsed: () => ReadonlySet<number> | undefined;
}

/** A validated operation (RFC 6902 §4). */
interface PatchOperation {
  readonly op: Verb;
  readonly path: JsonPointer;
  /** The source of `move` and `copy`; the path of any other operation. */
  readonly from: JsonPointer;
  /** The value of `add`, `replace` and `test`; null for any other operation. */
  readonly value: Json;
}

type Verb = 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
const verbs: readonly Verb[] = ['add', 'remove', 'replace', 'move', 'copy', 'test'];

/** Operations of one patch. */
const operationsMax = 1_000;

/**
 * Reads a JSON Patch. Throws `invalid_patch` if it is malformed, and `content_too_large` for more
 * than `operationsMax` operations. The patch itself throws `patch_not_applicable` for a missing
 * target or a failed test, and `content_too_large` if its copies have more than `copyLengthMax`
 * characters together. This bounds the document, however often operations double its parts:
 * previous length, patch and `copyLengthMax`.
 */
export function toJsonPatch(body: unknown, copyLengthMax: number): Patch {
  if (!Array.isArray(body)) throw invalidPatch('', 'must be an array of operations');
  if (body.length > operationsMax) {
    throw new AppError('content_too_large', `A patch has at most ${operationsMax} operations.`);
  }
  const operations = (body as Json[]).map(parseOperation); // validated by `http/json.ts`
  const apply = (document: Json): Json => {
    const copying = { left: copyLengthMax };
    let patched = document;
    let index = 0;
    try {
      for (const operation of operations) {
        patched = applyOperation(patched, operation, copying);
        index += 1;
      }
    } catch (error) {
      if (!(error instanceof NotApplicable)) throw error;
      const { message } = error;
      const text = `Operation ${index} cannot be applied: ${message}.`;
      const errors = [{ pointer: `/${index}`, message }];
      throw new AppError('patch_not_applicable', text, { errors });
    }
    return patched;
  };
  return { apply, itemsUsed: () => itemsOf(operations) };
}

function parseOperation(given: Json, index: number): PatchOperation {
  if (!isObject(given)) throw invalidPatch(`/${index}`, 'must be an object');
  const op = given['op'] as Verb;
  if (!verbs.includes(op)) throw invalidPatch(`/${index}/op`, `must be one of ${verbs.join(', ')}`);
  const path = parseMember(given, 'path', index);
  const from = op === 'move' || op === 'copy' ? parseMember(given, 'from', index) : path;
  // RFC 6902 §4.4: a value cannot be moved into itself. A token has only one spelling.
  if (op === 'move' && path.text.startsWith(`${from.text}/`)) {
    throw invalidPatch(`/${index}/from`, 'must not contain the path');
  }
  if (op !== 'add' && op !== 'replace' && op !== 'test') return { op, path, from, value: null };
  const { value } = given;
  if (value === undefined) throw invalidPatch(`/${index}`, 'must have a value');
  return { op, path, from, value };
}

function parseMember(members: JsonObject, name: 'path' | 'from', index: number): JsonPointer {
  const text = members[name];
  const pointer = typeof text === 'string' ? parsePointer(text) : undefined;
  if (pointer === undefined) throw invalidPatch(`/${index}/${name}`, 'must be a JSON Pointer');
  // R10 refuses this name in bodies; a pointer must not introduce it.
  if (pointer.tokens.includes('__proto__')) {
    throw invalidPatch(`/${index}/${name}`, 'must not name __proto__');
  }
  return pointer;
}

function invalidPatch(pointer: string, message: string): AppError {
  const text = `The body is not a JSON Patch document: ${pointer || 'the body'} ${message}.`;
  return new AppError('invalid_patch', text, { errors: [{ pointer, message }] });
}

/**
 * The indices that a patch of an array begins its pointers with; undefined if it needs every item,
 * because it moves items or uses the array as a whole.
 */
function itemsOf(operations: readonly PatchOperation[]): ReadonlySet<number> | undefined {
  const items = new Set<number>();
  for (const { op, path, from } of operations) {
    for (const { tokens } of [path, from]) {
      const [first = ''] = tokens;
      const isWithin = tokens.length > 1 || op === 'replace' || op === 'test';
      const index = isWithin ? toIndex(first) : undefined;
      if (index === undefined) return undefined;
      items.add(index);
    }
  }
  return items;
}

/** The reason why the current operation fails; `toJsonPatch` adds the operation's index. */
class NotApplicable extends Error {}

const noTarget = 'its target does not exist';

/** Changes the document itself, and returns it or its replacement. */
function applyOperation(document: Json, operation: PatchOperation, copying: { left: number }) {
  const { op, path, from, value } = operation;
  // Moves and copies are expressed by other operations (RFC 6902 §4.4, §4.5).
  if (op === 'move') {
    const moved = getValue(document, from);
    const rest = write(document, { op: 'remove', path: from });
    return write(rest, { op: 'add', path, value: moved });
  }
  if (op === 'copy') {
    const copied = copyJson(getValue(document, from), copying);
    return write(document, { op: 'add', path, value: copied });
  }
  if (op === 'test') {
    if (isEqualJson(getValue(document, path), value)) return document;
    throw new NotApplicable('the value is a different one');
  }
  // Copied: later operations may change the value, and the patch may be applied again.
  return write(document, { op, path, value: isContainer(value) ? copyJson(value) : value });
}

interface Write {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: JsonPointer;
  readonly value?: Json;
}

/**
 * Changes the document and returns it, or its replacement. The library's validation and its ban on
 * names are off: the checks here are stricter, and a member may be called `constructor`.
 */
function write(document: Json, { op, path: { text, tokens }, value = null }: Write): Json {
  const token = tokens.at(-1);
  if (token !== undefined) {
    const parent = findValue(document, tokens, tokens.length - 1);
    if (!isContainer(parent)) throw new NotApplicable(noTarget);
    // An `add` needs no existing member, and may append to an array.
    if (op !== 'add') {
      if (findChild(parent, token) === undefined) throw new NotApplicable(noTarget);
    } else if (Array.isArray(parent) && token !== '-') {
      const index = toIndex(token) ?? Infinity;
      if (index > parent.length) throw new NotApplicable('its index is not one of the array');
    }
  }
  const operation: Operation = { op, path: text, value }; // a removal ignores its value
  return jsonPatch.applyOperation<Json>(document, operation, false, true, false).newDocument;
}

function getValue(document: Json, { tokens }: JsonPointer): Json {
  const value = findValue(document, tokens);
  if (value === undefined) throw new NotApplicable(noTarget);
  return value;
}

/**
 * Reads a merge patch; every JSON value is a valid one. The library ends silently at some names of
 * members, and calls others. Therefore it merges marked names, and only the members that the patch
 * names, however long the document is:
 *
 *     document  {"a": {"b": 1, "c": 2}, "d": 3}     patch  {"a": {"b": null, "constructor": 4}}
 *     merged    {"~a": {"~b": 1}}        with       {"~a": {"~b": null, "~constructor": 4}}
 *               = {"~a": {"~constructor": 4}}
 *     result    {"a": {"c": 2, "constructor": 4}, "d": 3}
 */
export function toMergePatch(body: unknown): Patch {
  const patch = body as Json; // validated by `http/json.ts`
  const apply = (document: Json): Json => {
    const merged = mergePatch.apply(markNamed(document, patch), markNamed(patch, patch));
    return putMembers(document, patch, merged as Json);
  };
  return { apply, itemsUsed: () => undefined };
}

/**
 * The members that the patch names, of a document or of the patch itself, with marked names. An
 * array is a value: nothing in it is merged.
 */
function markNamed(value: Json, patch: Json): Json {
  if (!isObject(value) || !isObject(patch)) return value;
  const marked: Record<string, Json> = {};
  for (const name in patch) {
    const named = findChild(value, name);
    if (named !== undefined) marked[`~${name}`] = markNamed(named, patch[name] as Json);
  }
  return marked;
}

/** Puts what was merged in the place of the members that the patch names. Changes the document. */
function putMembers(document: Json | undefined, patch: Json, merged: Json): Json {
  if (!isObject(patch) || !isObject(merged)) return merged;
  const before = isObject(document) ? document : {};
  const members: [name: string, value: Json][] = [];
  for (const name in patch) {
    const value = merged[`~${name}`];
    if (value === undefined) Reflect.deleteProperty(before, name);
    else members.push([name, putMembers(findChild(before, name), patch[name] as Json, value)]);
  }
  return setMembers(before, members);
}
