/** JSON Patch as the tests call it: with the default limits, on a copy of the document. */

import assert from 'node:assert/strict';
import { toJsonPatch } from '../../dist/domain/patch.js';
import { AppError, type ErrorCode } from '../../dist/errors.js';
import type { Json } from '../../dist/store/model.js';

/** What the copies of one patch may hold, as by default. */
export const copyLengthMax = 1_048_576;

/** The patched document. */
export function patch(document: Json, operations: unknown): Json {
  return toJsonPatch(operations, copyLengthMax).apply(structuredClone(document));
}

/** The code of the refusal; also that the operations were not changed on the way. */
export function refusal(document: Json, operations: unknown): ErrorCode {
  const before = JSON.stringify(operations);
  let result: Json;
  try {
    result = patch(document, operations);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    assert.equal(JSON.stringify(operations), before);
    return error.code;
  }
  return assert.fail(`not refused: ${JSON.stringify(result).slice(0, 200)}`);
}
