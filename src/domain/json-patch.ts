/**
 * JSON Patch (RFC 6902), applied by `fast-json-patch`. What the package accepts wrongly is refused
 * first: unknown operations, loose pointers and indices, inherited members, unlimited copies.
 */

import jsonPatch, { type Operation } from 'fast-json-patch';
import { AppError } from '../errors.ts';
import type { Json, JsonObject } from '../store/model.ts';
import { type CopyBudget, copyJson, isEqualJson, isJsonArray, isJsonObject } from './json-value.ts';
import {
  findChild,
  findValue,
  isBelow,
  isContainer,
  parsePointer,
  toIndex,
  type JsonPointer,
} from './json-pointer.ts';

/** A validated operation (RFC 6902 §4). */
export interface PatchOperation {
  readonly op: (typeof verbs)[number];
  readonly path: JsonPointer;
  /** Of `move` and `copy`; for others the path. */
  readonly from: JsonPointer;
  /** Of `add`, `replace` and `test`; for others null. */
  readonly value: Json;
}

const verbs = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const;

/** Operations of one patch. */
const operationsMax = 1_000;

/**
 * The indices that a patch of an array begins its pointers with; undefined if it needs every item,
 * because it moves items or uses the array as a whole.
 */
export function itemsOf(operations: readonly PatchOperation[]): ReadonlySet<number> | undefined {
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

/**
 * Validates a patch document. Throws `invalid_patch` if it is malformed, and `content_too_large`
 * for more than `operationsMax` operations.
 */
export function parseJsonPatch(body: unknown): readonly PatchOperation[] {
  if (!Array.isArray(body)) throw invalidPatch('', 'must be an array of operations');
  if (body.length > operationsMax) {
    throw new AppError('content_too_large', `A patch has at most ${operationsMax} operations.`);
  }
  return (body as readonly Json[]).map(parseOperation); // validated by `http/json.ts`
}

function parseOperation(given: Json, index: number): PatchOperation {
  if (!isJsonObject(given)) throw invalidPatch(`/${index}`, 'must be an object');
  const op = verbs.find((verb) => verb === given['op']);
  if (op === undefined) throw invalidPatch(`/${index}/op`, `must be one of ${verbs.join(', ')}`);
  const path = parseMember(given, 'path', index);
  const from = op === 'move' || op === 'copy' ? parseMember(given, 'from', index) : path;
  // RFC 6902 §4.4: a value cannot be moved into itself.
  if (op === 'move' && isBelow(path, from)) {
    throw invalidPatch(`/${index}/from`, 'must not contain the path');
  }
  if (op !== 'add' && op !== 'replace' && op !== 'test') return { op, path, from, value: null };
  if (!Object.hasOwn(given, 'value')) throw invalidPatch(`/${index}`, 'must have a value');
  return { op, path, from, value: given['value'] as Json };
}

function parseMember(members: JsonObject, name: 'path' | 'from', index: number): JsonPointer {
  const text = Object.hasOwn(members, name) ? members[name] : undefined;
  const pointer = typeof text === 'string' ? parsePointer(text) : undefined;
  if (pointer === undefined) throw invalidPatch(`/${index}/${name}`, 'must be a JSON Pointer');
  // R10 refuses this name in bodies; a pointer must not introduce it.
  if (pointer.tokens.includes('__proto__')) {
    throw invalidPatch(`/${index}/${name}`, 'must not name __proto__');
  }
  return pointer;
}

function invalidPatch(pointer: string, message: string): AppError {
  const place = pointer === '' ? 'the body' : pointer;
  return new AppError(
    'invalid_patch',
    `The body is not a JSON Patch document: ${place} ${message}.`,
    {
      errors: [{ pointer, message }],
    },
  );
}

/** The reason why the current operation fails; `applyJsonPatch` adds the operation's index. */
class NotApplicable extends Error {}

const noTarget = 'its target does not exist';

/**
 * Applies all operations in order to the document itself, and returns it or its replacement.
 * Throws `patch_not_applicable` for a missing target or a failed test, and `content_too_large` if
 * the copies have more than `copyLengthMax` characters together. This bounds the document, however
 * often operations double its parts: previous length, patch and `copyLengthMax`.
 */
export function applyJsonPatch(
  document: Json,
  operations: readonly PatchOperation[],
  copyLengthMax: number,
): Json {
  const copying = { left: copyLengthMax };
  let patched = document;
  let index = 0;
  try {
    for (const operation of operations) {
      patched = apply(patched, operation, copying);
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
}

/** Moves and copies are expressed by other operations (RFC 6902 §4.4, §4.5). */
function apply(
  document: Json,
  { op, path, from, value }: PatchOperation,
  copying: CopyBudget,
): Json {
  if (op === 'move') {
    const moved = getValue(document, from);
    const rest = write(document, { op: 'remove', path: from });
    return write(rest, { op: 'add', path, value: moved });
  }
  if (op === 'copy') {
    const copied = copyJson(getValue(document, from), copying);
    return write(document, { op: 'add', path, value: copied });
  }
  if (op !== 'test') return write(document, { op, path, value: toOwn(value) });
  if (isEqualJson(getValue(document, path), value)) return document;
  throw new NotApplicable('the value is a different one');
}

/** A copy: later operations may change the value, and the patch may be applied again. */
function toOwn(value: Json): Json {
  return isContainer(value) ? copyJson(value, { left: Infinity }) : value;
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
function write(document: Json, { op, path, value = null }: Write): Json {
  checkTarget(document, op, path.tokens);
  const operation: Operation = { op, path: path.text, value }; // a removal ignores its value
  return jsonPatch.applyOperation<Json>(document, operation, false, true, false).newDocument;
}

/** An `add` needs no existing member, and may append to an array. */
function checkTarget(document: Json, op: Write['op'], tokens: readonly string[]): void {
  const token = tokens.at(-1);
  if (token === undefined) return;
  const parent = findValue(document, tokens, tokens.length - 1);
  if (!isContainer(parent)) throw new NotApplicable(noTarget);
  if (op !== 'add') {
    if (findChild(parent, token) === undefined) throw new NotApplicable(noTarget);
  } else if (isJsonArray(parent) && token !== '-') {
    const index = toIndex(token);
    if (index === undefined || index > parent.length) {
      throw new NotApplicable('its index is not one of the array');
    }
  }
}

function getValue(document: Json, { tokens }: JsonPointer): Json {
  const value = findValue(document, tokens);
  if (value === undefined) throw new NotApplicable(noTarget);
  return value;
}
