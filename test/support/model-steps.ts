/** The steps that a history is made of. */

import * as fc from 'fast-check';
import { anyCharacter } from './texts.js';

type Endpoint = 'rest' | 'graphql';

/** Any characters, and never blank (R8). */
const text = fc.string({ unit: anyCharacter, maxLength: 12 }).map((rest) => `a${rest}`);
/** Chooses among what there is; 0 is what is not there. */
const which = fc.nat({ max: 12 });
const endpoint = fc.constantFrom<Endpoint>('rest', 'graphql');
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
const kind = <K extends string>(name: K): fc.Arbitrary<K> => fc.constant(name);

/** One step of a history. */
export const step = fc.oneof(
  { arbitrary: fc.record({ kind: kind('post'), endpoint, title: text, content: text }), weight: 3 },
  { arbitrary: fc.record({ kind: kind('comment'), endpoint, which, content: text }), weight: 3 },
  fc.record({ kind: kind('change'), which, title: text }),
  fc.record({ kind: kind('remove'), which }),
  fc.record({ kind: kind('todo'), title: text, completed: fc.boolean() }),
  fc.record({ kind: kind('article'), article }),
  fc.record({ kind: kind('patch'), which, note: text, holds }),
  fc.record({ kind: kind('patchAll'), title: text, holds }),
  fc.record({ kind: kind('merge'), which, patch: mergePatch }),
  fc.record({ kind: kind('refused'), which }),
);
export type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;
