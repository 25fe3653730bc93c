/**
 * JSON Patch (RFC 6902). `fast-json-patch` does the writing; what it lets through is refused here
 * first: unknown operations, loose pointers and indices, inherited members, endless copies.
 *
 * A document is never changed in place. The objects and arrays on the way to a target are copied
 * once per patch, everything else is shared with the document before: a small patch of a large
 * document costs little, and what the store holds stays as it is.
 */

import jsonPatch, { type Operation } from 'fast-json-patch';
import { AppError } from '../errors.ts';
import type { Json } from '../store/model.ts';
import { copyJson, copyMembers, isEqualJson, isJsonArray, type CopyBudget } from './json-value.ts';
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

/** One operation (RFC 6902 §4) that has been checked. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: JsonPointer; readonly value: Json }
  | { readonly op: 'remove'; readonly path: JsonPointer }
  | { readonly op: 'move' | 'copy'; readonly from: JsonPointer; readonly path: JsonPointer };

/** Of one patch: each copies the objects on the way to its target. */
const operationsMax = 1_000;

/**
 * A patch document → operations. Throws `invalid_patch` for what is no patch document, and
 * `content_too_large` for more than `operationsMax` operations.
 */
export function parseJsonPatch(body: unknown): readonly PatchOperation[] {
  if (!Array.isArray(body)) throw invalidPatch('', 'must be an array of operations');
  if (body.length > operationsMax) {
    throw new AppError('content_too_large', `A patch has at most ${operationsMax} operations.`);
  }
  return body.map(parseOperation);
}

function parseOperation(given: unknown, index: number): PatchOperation {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalidPatch(`/${index}`, 'must be an object');
  }
  const members = given as Readonly<Record<string, unknown>>; // JSON: an object has only members
  const { op } = members;
  const path = parseMember(members, 'path', index);
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (!Object.hasOwn(members, 'value')) throw invalidPatch(`/${index}`, 'must have a value');
      return { op, path, value: members['value'] as Json };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy': {
      const from = parseMember(members, 'from', index);
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

function parseMember(
  members: Readonly<Record<string, unknown>>,
  name: 'path' | 'from',
  index: number,
): JsonPointer {
  const text = Object.hasOwn(members, name) ? members[name] : undefined;
  const pointer = typeof text === 'string' ? parsePointer(text) : undefined;
  if (pointer === undefined) throw invalidPatch(`/${index}/${name}`, 'must be a JSON Pointer');
  // R10 keeps this name out of bodies; a pointer must not bring it in.
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

/** One patch under way. */
interface Work {
  document: Json;
  /** The objects and arrays that were copied already: these may be written to. */
  readonly own: Set<Readonly<Container>>;
  readonly copying: CopyBudget;
}

/** Says what is wrong with the operation under way; `applyJsonPatch` adds which one it is. */
class NotApplicable extends Error {}

const noTarget = 'its target does not exist';

/**
 * All operations in order, or an error: `patch_not_applicable` for a missing target or a failed
 * test, `content_too_large` where its copies would hold more than `copyBytesMax` altogether. So the
 * document never holds more than it did before, the patch and that many bytes, however often its
 * parts are doubled.
 */
export function applyJsonPatch(
  document: Json,
  operations: readonly PatchOperation[],
  copyBytesMax: number,
): Json {
  const work: Work = { document, own: new Set(), copying: { left: copyBytesMax } };
  let index = 0;
  try {
    for (const operation of operations) {
      applyOperation(work, operation);
      index += 1;
    }
  } catch (error) {
    if (!(error instanceof NotApplicable)) throw error;
    const { message } = error;
    throw new AppError(
      'patch_not_applicable',
      `Operation ${index} cannot be applied: ${message}.`,
      {
        errors: [{ pointer: `/${index}`, message }],
      },
    );
  }
  return work.document;
}

/** A move and a copy are written as the operations that RFC 6902 §4.4 and §4.5 equate them with. */
function applyOperation(work: Work, operation: PatchOperation): void {
  const { op, path } = operation;
  switch (op) {
    case 'add':
    case 'replace':
      write(work, op, { path, value: operation.value });
      break;
    case 'remove':
      write(work, op, { path });
      break;
    case 'move': {
      const value = getValue(work.document, operation.from);
      write(work, 'remove', { path: operation.from });
      write(work, 'add', { path, value });
      break;
    }
    case 'copy': {
      const value = getValue(work.document, operation.from);
      write(work, 'add', { path, value: copyJson(value, work.copying) });
      break;
    }
    case 'test':
      if (!isEqualJson(getValue(work.document, path), operation.value)) {
        throw new NotApplicable('the value there is another one');
      }
      break;
  }
}

interface Edit {
  readonly path: JsonPointer;
  readonly value?: Json;
}

function write(work: Work, op: 'add' | 'replace' | 'remove', { path, value }: Edit): void {
  const last = path.tokens.at(-1);
  if (last === undefined) {
    work.document = edit(work.document, { op, path: '', value });
    return;
  }
  const parent = getOwnParent(work, path);
  checkTarget(parent, last, op);
  // The library needs to see no more than what it changes: the parent, and the last token.
  edit(parent, { op, path: path.text.slice(path.text.lastIndexOf('/')), value });
}

interface LibraryEdit {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value: Json | undefined;
}

/**
 * Changes `target` and gives it back, or its replacement. No validation and no ban on names: the
 * checks here are stricter, and a member may be called `constructor`.
 */
function edit(target: Json | Container, operation: LibraryEdit): Json {
  const given = operation as Operation; // a removal ignores its value
  return jsonPatch.applyOperation<Json>(target, given, false, true, false).newDocument;
}

/** The object or array that holds the target, copied with all that lead to it. */
function getOwnParent(work: Work, { tokens }: JsonPointer): Container {
  let container = toOwn(work, work.document);
  work.document = container;
  for (let at = 0; at < tokens.length - 1; at += 1) {
    const token = tokens[at] as string; // within its length
    const child = findChild(container, token);
    const own = toOwn(work, child);
    // An array takes its index as text too; `findChild` has checked it.
    if (own !== child) (container as Record<string, Json>)[token] = own;
    container = own;
  }
  return container;
}

function toOwn(work: Work, value: Json | undefined): Container {
  if (!isContainer(value)) throw new NotApplicable(noTarget);
  if (work.own.has(value)) return value as Container; // made below, in this patch
  const copy = isJsonArray(value) ? value.slice() : copyMembers(value);
  work.own.add(copy);
  return copy;
}

/** An added member need not be there; an added item may come right behind the last one. */
function checkTarget(parent: Container, token: string, op: 'add' | 'replace' | 'remove'): void {
  if (op !== 'add') {
    if (findChild(parent, token) === undefined) throw new NotApplicable(noTarget);
  } else if (isJsonArray(parent) && token !== '-') {
    const index = toIndex(token);
    if (index === undefined || index > parent.length) {
      throw new NotApplicable('its index is not one of the array');
    }
  }
}

function getValue(document: Json, pointer: JsonPointer): Json {
  const value = findValue(document, pointer);
  if (value === undefined) throw new NotApplicable(noTarget);
  return value;
}
