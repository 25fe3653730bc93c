/** Request bodies: unknown → typed, or one 422 that names every fault (R5, R8). */

import { isBlank } from '../domain/text.ts';
import { type FieldError, invalidBody } from '../errors.ts';
import { isObject } from '../http/json.ts';

/** Members of a JSON object; unknown ones are ignored (R8). Anything else: 422. */
export function decodeObject(body: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(body)) throw invalidBody([{ pointer: '', message: 'must be an object' }]);
  return body;
}

/** The named members, each a text, and one that is not blank unless it may be. */
export function decodeTexts<const N extends string>(
  body: unknown,
  names: readonly N[],
  mayBeBlank = false,
): Readonly<Record<N, string>> {
  const members = decodeObject(body);
  const faults: FieldError[] = [];
  for (const name of names) {
    const message = textFault(members[name], mayBeBlank);
    if (message !== undefined) faults.push({ pointer: `/${name}`, message });
  }
  if (faults.length > 0) throw invalidBody(faults);
  return members as Record<N, string>; // each was checked above
}

function textFault(value: unknown, mayBeBlank = false): string | undefined {
  if (value === undefined) return 'is required';
  if (typeof value !== 'string') return 'must be a string';
  return isBlank(value) && !mayBeBlank ? 'must not be blank' : undefined;
}

/** A todo as a client sends it (R13): its own id is ignored. */
export function decodeTodo(body: unknown): { title: string; completed: boolean } {
  const { title, completed = false } = decodeObject(body);
  const faults: FieldError[] = [];
  const message = textFault(title);
  if (message !== undefined) faults.push({ pointer: '/title', message });
  if (typeof completed !== 'boolean') {
    faults.push({ pointer: '/completed', message: 'must be true or false' });
  }
  if (faults.length > 0) throw invalidBody(faults);
  return { title, completed } as { title: string; completed: boolean }; // checked above
}
