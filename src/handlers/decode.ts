/** Decodes request bodies: typed values, or one 422 that names every fault (R5, R8). */

import { faultOfName } from '../domain/comments.ts';
import { type FieldError, invalidBody } from '../errors.ts';
import { isObject } from '../http/json.ts';

/** Returns what is wrong with the value of a member, or undefined. */
export type Rule = (value: unknown) => string | undefined;

/**
 * Returns a decoder of the members that have a rule; unknown ones are ignored (R8). It returns only
 * these: what is kept while a request waits must not hold the whole body.
 */
export function decoderOf<M extends object>(rules: Readonly<Record<keyof M & string, Rule>>) {
  const entries = Object.entries<Rule>(rules);
  return (body: unknown): M => {
    if (!isObject(body)) throw invalidBody([{ pointer: '', message: 'must be an object' }]);
    const members: Record<string, unknown> = {};
    const faults: FieldError[] = [];
    for (const [name, rule] of entries) {
      const value = body[name];
      const message = rule(value);
      if (message === undefined) members[name] = value;
      else faults.push({ pointer: `/${name}`, message });
    }
    if (faults.length > 0) throw invalidBody(faults);
    return members as M; // each was checked
  };
}

/** A text, which may be blank. */
export const anyText: Rule = (value) => {
  if (value === undefined) return 'is required';
  return typeof value === 'string' ? undefined : 'must be a string';
};

export const text: Rule = (value) =>
  typeof value === 'string' && value.trim() !== ''
    ? undefined
    : (anyText(value) ?? 'must not be blank');

/** The name of who writes a comment (R48). */
export const aName: Rule = (value) => anyText(value) ?? faultOfName(String(value));

export const flag: Rule = (value) =>
  typeof value === 'boolean' ? undefined : 'must be true or false';

export function oneOf(words: readonly string[]): Rule {
  const message = `must be one of ${words.join(', ')}`;
  return (value) => (words.includes(value as string) ? undefined : message);
}

/** For an optional member of a record that is created: null counts as absent (R8). */
export function optionalOrNull(rule: Rule): Rule {
  return (value) => (value == null ? undefined : rule(value));
}

export function optional(rule: Rule): Rule {
  return (value) => (value === undefined ? undefined : rule(value));
}
