/** What the schema says about itself, as a client that introspects it reads it (Spec §4.1). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getIntrospectionQuery } from 'graphql';
import { startServer } from '../support/server.ts';

interface Described {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly fields?: readonly Described[] | null;
  readonly inputFields?: readonly Described[] | null;
  readonly enumValues?: readonly Described[] | null;
  readonly args?: readonly Described[];
}

interface Schema {
  readonly types?: readonly Described[];
  readonly directives?: readonly Described[];
}

/** Of a part of the schema and of all within it, as `Query.allPosts.first`. */
function* describe(part: Described, place: string): Generator<[string, string]> {
  yield [place, part.description ?? ''];
  const { fields, inputFields, enumValues, args } = part;
  for (const parts of [fields, inputFields, enumValues, args]) {
    for (const inner of parts ?? []) yield* describe(inner, `${place}.${inner.name}`);
  }
}

test('each type, field, argument and value has a description of whole sentences', async (context) => {
  const server = await startServer(context);
  const response = await server.send('POST', '/graphql', { query: getIntrospectionQuery() });
  const { data } = (await response.json()) as { data: Record<string, Schema> };
  const { types = [], directives = [] } = Object.values(data)[0] ?? {};
  const own = types.filter(({ name }) => !name.startsWith('__'));
  const all = [...own, ...directives].flatMap((part) => [...describe(part, part.name)]);
  assert.ok(all.length > 60, `${all.length}`);
  const faulty = all.filter(([, description]) => !/^[A-Z][^]*\.$/.test(description));
  assert.deepEqual(faulty, []);
});
