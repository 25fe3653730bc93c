/**
 * Dependencies of the handlers of records, and decoding of request bodies: unknown → typed, or one
 * 422 that names every fault (R5, R8).
 */

import type { Config } from '../config.ts';
import { isBlank } from '../domain/text.ts';
import { type FieldError, invalidBody } from '../errors.ts';
import { isObject } from '../http/json.ts';
import { oneStatus, postStatuses, type RecordResponses } from '../records/records.ts';
import type { PostMembers, Store, TodoMembers } from '../store/store.ts';

export interface RecordDeps {
  readonly store: Store;
  readonly records: RecordResponses;
  readonly config: Pick<Config, 'bodyBytesMax' | 'publicUrl'>;
}

/** Members of a JSON object; unknown ones are ignored (R8). Anything else: 422. */
function decodeObject(body: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(body)) throw invalidBody([{ pointer: '', message: 'must be an object' }]);
  return body;
}

/**
 * Returns a decoder of the named members. Each must be a text, and not blank unless `mayBeBlank`.
 * It returns only these members: what is kept while a request waits must not hold the whole body.
 */
export function textsOf<const N extends string>(
  names: readonly N[],
  mayBeBlank = false,
): (body: unknown) => Readonly<Record<N, string>> {
  return (body) => {
    const members = decodeObject(body);
    refuseFaults(names.map((name) => [name, textFault(members[name], mayBeBlank)]));
    const texts: Record<string, unknown> = {};
    for (const name of names) texts[name] = members[name];
    return texts as Record<N, string>; // each was checked above
  };
}

function textFault(value: unknown, mayBeBlank = false): string | undefined {
  if (value === undefined) return 'is required';
  if (typeof value !== 'string') return 'must be a string';
  return isBlank(value) && !mayBeBlank ? 'must not be blank' : undefined;
}

/** The members of a post that a merge patch changes (R37). */
export function decodePostChange(body: unknown): Partial<PostMembers> {
  const { title, content, status } = decodeObject(body);
  refuseFaults([
    ['title', title === undefined ? undefined : textFault(title)],
    ['content', content === undefined ? undefined : textFault(content)],
    ['status', isOneOf(status, postStatuses) ? undefined : `must be ${oneStatus}`],
  ]);
  return { title, content, status } as Partial<PostMembers>; // checked above
}

/** The members of a todo that a merge patch changes (R37). */
export function decodeTodoChange(body: unknown): Partial<TodoMembers> {
  const { title, completed } = decodeObject(body);
  refuseFaults([
    ['title', title === undefined ? undefined : textFault(title)],
    ['completed', isOneOf(completed, [true, false]) ? undefined : 'must be true or false'],
  ]);
  return { title, completed } as Partial<TodoMembers>; // checked above
}

function isOneOf(value: unknown, values: readonly unknown[]): boolean {
  return value === undefined || values.includes(value);
}

/** A todo as a client sends it (R13); its id is ignored. */
export function decodeTodo(body: unknown): { title: string; completed: boolean } {
  const { title, completed = false } = decodeObject(body);
  refuseFaults([
    ['title', textFault(title)],
    ['completed', typeof completed === 'boolean' ? undefined : 'must be true or false'],
  ]);
  return { title, completed } as { title: string; completed: boolean }; // checked above
}

/** Throws a 422 that lists the members with a fault. */
function refuseFaults(members: readonly (readonly [name: string, fault: string | undefined])[]) {
  const faults: FieldError[] = [];
  for (const [name, message] of members) {
    if (message !== undefined) faults.push({ pointer: `/${name}`, message });
  }
  if (faults.length > 0) throw invalidBody(faults);
}
