/** The steps that a history is made of. */

import * as fc from 'fast-check';
import type { Document } from './model.js';

/** One step of a history. `which` chooses among what there is; where it is 0, what is not there. */
export type Step =
  | { readonly kind: 'post'; readonly door: Door; readonly title: string; readonly content: string }
  | { readonly kind: 'change'; readonly which: number; readonly title: string }
  | { readonly kind: 'remove'; readonly which: number }
  | {
      readonly kind: 'comment';
      readonly door: Door;
      readonly which: number;
      readonly content: string;
    }
  | { readonly kind: 'todo'; readonly title: string; readonly completed: boolean }
  | { readonly kind: 'article'; readonly article: Document }
  | {
      readonly kind: 'patch';
      readonly which: number;
      readonly note: string;
      readonly holds: boolean;
    }
  | { readonly kind: 'patchAll'; readonly title: string; readonly holds: boolean }
  | { readonly kind: 'merge'; readonly which: number; readonly patch: Document }
  | { readonly kind: 'refused'; readonly which: number };
type Door = 'rest' | 'graphql';

/** Any characters, and never blank (R8). */
const text = fc.string({ unit: 'binary', maxLength: 12 }).map((rest) => `a${rest}`);
const which = fc.nat({ max: 12 });
const door = fc.constantFrom<Door>('rest', 'graphql');
const author = fc.record(
  { givenName: text, familyName: text },
  { requiredKeys: [], noNullPrototype: true },
);
const article = fc.record(
  { id: fc.integer({ min: 1, max: 8 }), title: text, author, content: text, tags: fc.array(text) },
  { requiredKeys: ['title'], noNullPrototype: true },
);
const nullable = fc.option(text, { nil: null });
const mergePatch = fc.record(
  {
    title: text,
    content: nullable,
    note: nullable,
    author: fc.record(
      { givenName: nullable, familyName: nullable },
      { requiredKeys: [], noNullPrototype: true },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const holds = fc.boolean();
const kind = <K extends Step['kind']>(name: K): fc.Arbitrary<K> => fc.constant(name);

export const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ kind: kind('post'), door, title: text, content: text }), weight: 3 },
  { arbitrary: fc.record({ kind: kind('comment'), door, which, content: text }), weight: 3 },
  fc.record({ kind: kind('change'), which, title: text }),
  fc.record({ kind: kind('remove'), which }),
  fc.record({ kind: kind('todo'), title: text, completed: fc.boolean() }),
  fc.record({ kind: kind('article'), article }),
  fc.record({ kind: kind('patch'), which, note: text, holds }),
  fc.record({ kind: kind('patchAll'), title: text, holds }),
  fc.record({ kind: kind('merge'), which, patch: mergePatch }),
  fc.record({ kind: kind('refused'), which }),
);
