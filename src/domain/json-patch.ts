/**
 * JSON Patch (RFC 6902), applied by `fast-json-patch`. What the package accepts wrongly is refused
 * first: unknown operations, loose pointers and indices, inherited members, unlimited copies.
 *
 * A document is never changed in place. The objects and arrays on the path to a target are copied
 * once per patch, the rest is shared with the previous document: a small patch of a large document
 * costs little, and the stored document does not change.
 */

import jsonPatch, { type Operation } from 'fast-json-patch';
import { AppError } from '../errors.ts';
import type { Json, JsonObject } from '../store/model.ts';
import {
  type CopyBudget,
  copyJson,
  copyMembers,
  isEqualJson,
  isJsonArray,
  isJsonObject,
} from './json-value.ts';
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

/** Operations of one patch: each copies the objects on the path to its target. */
const operationsMax = 1_000;

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
 * Applies all operations in order, or throws: `patch_not_applicable` for a missing target or a
 * failed test, `content_too_large` if the copies exceed `copyBytesMax` together. This bounds the
 * document, however often operations double its parts: previous size, patch and `copyBytesMax`.
 */
export function applyJsonPatch(
  document: Json,
  operations: readonly PatchOperation[],
  copyBytesMax: number,
): Json {
  const patching = new Patching(document, copyBytesMax);
  for (const [index, operation] of operations.entries()) {
    try {
      patching.apply(operation);
    } catch (error) {
      if (!(error instanceof NotApplicable)) throw error;
      const { message } = error;
      const text = `Operation ${index} cannot be applied: ${message}.`;
      throw new AppError('patch_not_applicable', text, {
        errors: [{ pointer: `/${index}`, message }],
      });
    }
  }
  return patching.document;
}

type Write = 'add' | 'replace' | 'remove';

/** The state of one patch while it is applied. */
class Patching {
  document: Json;
  /** The objects and arrays that this patch has copied, and may therefore change. */
  readonly #own = new Set<Readonly<Container>>();
  readonly #copying: CopyBudget;

  constructor(document: Json, copyBytesMax: number) {
    this.document = document;
    // Counted as memory: a character takes two bytes.
    this.#copying = { left: 2 * copyBytesMax };
  }

  /** Moves and copies are expressed by other operations (RFC 6902 §4.4, §4.5). */
  apply(operation: PatchOperation): void {
    const { op, path } = operation;
    switch (op) {
      case 'add':
      case 'replace':
        this.#write(op, path, operation.value);
        break;
      case 'remove':
        this.#write(op, path);
        break;
      case 'move': {
        const value = this.#getValue(operation.from);
        this.#write('remove', operation.from);
        this.#write('add', path, value);
        break;
      }
      case 'copy':
        this.#write('add', path, copyJson(this.#getValue(operation.from), this.#copying));
        break;
      case 'test':
        if (!isEqualJson(this.#getValue(path), operation.value)) {
          throw new NotApplicable('the value there is another one');
        }
        break;
    }
  }

  #write(op: Write, path: JsonPointer, value?: Json): void {
    const last = path.tokens.at(-1);
    if (last === undefined) {
      this.document = edit(this.document, { op, path: '', value });
      return;
    }
    const parent = this.#getOwnParent(path);
    checkTarget(parent, last, op);
    // The library gets only what it changes: the parent, and the last token of the path.
    edit(parent, { op, path: path.text.slice(path.text.lastIndexOf('/')), value });
  }

  /** Returns the object or array that holds the target, after copying it and its ancestors. */
  #getOwnParent({ tokens }: JsonPointer): Container {
    let container = this.#toOwn(this.document);
    this.document = container;
    for (let at = 0; at < tokens.length - 1; at += 1) {
      const token = tokens[at] as string; // within its length
      const own = this.#toOwn(findChild(container, token));
      // An array accepts its index as text; `findChild` has validated it.
      (container as Record<string, Json>)[token] = own;
      container = own;
    }
    return container;
  }

  #toOwn(value: Json | undefined): Container {
    if (!isContainer(value)) throw new NotApplicable(noTarget);
    if (this.#own.has(value)) return value as Container; // made below, in this patch
    const copy = isJsonArray(value) ? value.slice() : copyMembers(value);
    this.#own.add(copy);
    return copy;
  }

  #getValue(pointer: JsonPointer): Json {
    const value = findValue(this.document, pointer);
    if (value === undefined) throw new NotApplicable(noTarget);
    return value;
  }
}

/**
 * Changes `target` and returns it, or its replacement. The library's validation and its ban on
 * names are off: the checks here are stricter, and a member may be called `constructor`.
 */
function edit(
  target: Json | Container,
  operation: { op: Write; path: string; value: unknown },
): Json {
  const given = operation as Operation; // a removal ignores its value
  return jsonPatch.applyOperation<Json>(target, given, false, true, false).newDocument;
}

/** An `add` needs no existing member, and may append to an array. */
function checkTarget(parent: Container, token: string, op: Write): void {
  if (op !== 'add') {
    if (findChild(parent, token) === undefined) throw new NotApplicable(noTarget);
  } else if (isJsonArray(parent) && token !== '-') {
    const index = toIndex(token);
    if (index === undefined || index > parent.length) {
      throw new NotApplicable('its index is not one of the array');
    }
  }
}
