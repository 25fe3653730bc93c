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
  type Container,
  type JsonPointer,
} from './json-pointer.ts';

/** A validated operation (RFC 6902 §4). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: JsonPointer; readonly value: Json }
  | { readonly op: 'remove'; readonly path: JsonPointer }
  | { readonly op: 'move' | 'copy'; readonly from: JsonPointer; readonly path: JsonPointer };

/** Operations of one patch. */
const operationsMax = 1_000;

/**
 * The indices that a patch of an array begins its pointers with; undefined if it needs every item,
 * because it moves items or uses the array as a whole.
 */
export function itemsOf(operations: readonly PatchOperation[]): ReadonlySet<number> | undefined {
  const items = new Set<number>();
  for (const operation of operations) {
    const pointers = 'from' in operation ? [operation.path, operation.from] : [operation.path];
    for (const { tokens } of pointers) {
      const [first = ''] = tokens;
      const isWithin = tokens.length > 1 || operation.op === 'replace' || operation.op === 'test';
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
  const op: unknown = given['op'];
  const path = parseMember(given, 'path', index);
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (!Object.hasOwn(given, 'value')) throw invalidPatch(`/${index}`, 'must have a value');
      return { op, path, value: given['value'] as Json };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy': {
      const from = parseMember(given, 'from', index);
      // RFC 6902 §4.4: a value cannot be moved into itself.
      if (op === 'move' && isBelow(path, from)) {
        throw invalidPatch(`/${index}/from`, 'must not contain the path');
      }
      return { op, from, path };
    }
    default:
      throw invalidPatch(`/${index}/op`, 'must be add, remove, replace, move, copy or test');
  }
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
  return new AppError('invalid_patch', `This is no JSON Patch document: ${place} ${message}.`, {
    errors: [{ pointer, message }],
  });
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
  for (const [index, operation] of operations.entries()) {
    try {
      patched = apply(patched, operation, copying);
    } catch (error) {
      if (!(error instanceof NotApplicable)) throw error;
      const { message } = error;
      const text = `Operation ${index} cannot be applied: ${message}.`;
      throw new AppError('patch_not_applicable', text, {
        errors: [{ pointer: `/${index}`, message }],
      });
    }
  }
  return patched;
}

/** Moves and copies are expressed by other operations (RFC 6902 §4.4, §4.5). */
function apply(document: Json, operation: PatchOperation, copying: CopyBudget): Json {
  const { op, path } = operation;
  switch (op) {
    case 'add':
    case 'replace':
      return write(document, { op, path, value: toOwn(operation.value) });
    case 'remove':
      return write(document, { op, path });
    case 'move': {
      const value = getValue(document, operation.from);
      const rest = write(document, { op: 'remove', path: operation.from });
      return write(rest, { op: 'add', path, value });
    }
    case 'copy': {
      const value = copyJson(getValue(document, operation.from), copying);
      return write(document, { op: 'add', path, value });
    }
    case 'test':
  }
  if (!isEqualJson(getValue(document, path), operation.value)) {
    throw new NotApplicable('the value there is another one');
  }
  return document;
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

function write(document: Json, { op, path, value }: Write): Json {
  const last = path.tokens.at(-1);
  if (last === undefined) return edit(document, { op, path: '', value });
  const parent = findValue(document, path.tokens.slice(0, -1));
  if (!isContainer(parent)) throw new NotApplicable(noTarget);
  checkTarget(parent, last, op);
  // The library gets only what it changes: the parent, and the last token of the path.
  edit(parent, { op, path: path.text.slice(path.text.lastIndexOf('/')), value });
  return document;
}

/**
 * Changes `target` and returns it, or its replacement. The library's validation and its ban on
 * names are off: the checks here are stricter, and a member may be called `constructor`.
 */
function edit(target: Json, operation: { op: string; path: string; value: unknown }): Json {
  const given = operation as Operation; // a removal ignores its value
  return jsonPatch.applyOperation<Json>(target, given, false, true, false).newDocument;
}

function getValue(document: Json, { tokens }: JsonPointer): Json {
  const value = findValue(document, tokens);
  if (value === undefined) throw new NotApplicable(noTarget);
  return value;
}

/** An `add` needs no existing member, and may append to an array. */
function checkTarget(parent: Container, token: string, op: Write['op']): void {
  if (op !== 'add') {
    if (findChild(parent, token) === undefined) throw new NotApplicable(noTarget);
  } else if (isJsonArray(parent) && token !== '-') {
    const index = toIndex(token);
    if (index === undefined || index > parent.length) {
      throw new NotApplicable('its index is not one of the array');
    }
  }
}
