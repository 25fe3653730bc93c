/** Any history of calls has the same answers in a durable store as it has in memory. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import * as fc from 'fast-check';
import { createMemoryStore } from '../../dist/store/memory.js';
import type { Store } from '../../dist/store/store.js';
import { changing, toDraft } from '../support/article-texts.js';
import { allOf } from '../support/lists.js';
import { cases } from '../support/long.js';
import { driverOptions } from '../support/driver-options.js';
import { durableStores, openOn } from '../support/stores.js';
import { anyCharacter } from '../support/texts.js';

/** One call; `at` picks among the ids that earlier calls gave. */
type Call =
  | { readonly kind: 'create'; readonly text: string; readonly owned: boolean }
  | { readonly kind: 'update' | 'comment'; readonly at: number; readonly text: string }
  | { readonly kind: 'remove' | 'comments' | 'change'; readonly at: number }
  | { readonly kind: 'save'; readonly text: string; readonly id: number | undefined }
  | { readonly kind: 'todo'; readonly text: string; readonly done: boolean }
  | { readonly kind: 'posts' | 'changeAll' | 'articles' | 'todos' | 'together' };

const text = fc.string({ unit: anyCharacter, maxLength: 8 });
const at = fc.nat(7);
const call: fc.Arbitrary<Call> = fc.oneof(
  fc.record({ kind: fc.constant('create'), text, owned: fc.boolean() }),
  fc.record({ kind: fc.constantFrom('update', 'comment'), at, text }),
  fc.record({ kind: fc.constantFrom('remove', 'comments', 'change'), at }),
  fc.record({
    kind: fc.constant('save'),
    text,
    id: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
  }),
  fc.record({ kind: fc.constant('todo'), text, done: fc.boolean() }),
  fc.record({ kind: fc.constantFrom('posts', 'changeAll', 'articles', 'todos', 'together') }),
);

for (const { name, skip, newUrl } of durableStores) {
  it(`answers any history of calls ${name} as in memory`, { skip }, async (t) => {
    const property = fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
      const expected = await play(createMemoryStore(driverOptions()), calls);
      const store = await openOn(t, await newUrl(t));
      const actual = await play(store, calls);
      await store.close();
      assert.deepEqual(named(actual), named(expected));
    });
    await fc.assert(property, { numRuns: cases(48) });
  });
}

/** Ids by the order in which they appear: a driver may make one that it does not use. */
function named(results: readonly unknown[]): unknown {
  const names = new Map<string, string>();
  const name = (id: string): string => {
    const known = names.get(id) ?? `id ${names.size}`;
    names.set(id, known);
    return known;
  };
  const written = JSON.stringify(results, (_key, value: unknown) => value ?? String(value));
  return JSON.parse(written.replaceAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, name));
}

async function play(store: Store, calls: readonly Call[]): Promise<unknown[]> {
  const { initial } = driverOptions();
  const ids = initial.posts.map(({ id }) => id);
  const results: unknown[] = [];
  for (const each of calls) {
    const result = await ask(store, each, ids);
    if (each.kind === 'create') ids.unshift((result as { id: string }).id);
    // A list of the memory driver may grow with later calls.
    results.push(structuredClone(result));
  }
  return results;
}

// oxlint-disable-next-line typescript/consistent-return -- the switch is exhaustive
async function ask(store: Store, asked: Call, ids: readonly string[]): Promise<unknown> {
  const { posts, comments, authors, articles, todos } = store;
  const pick = (index: number): string => ids[index % ids.length] ?? '';
  switch (asked.kind) {
    case 'create': {
      const authorId = asked.owned ? (driverOptions().initial.authors[0]?.id ?? null) : null;
      return posts.create({ title: asked.text, content: asked.text, authorId });
    }
    case 'update':
      return posts.update(pick(asked.at), { title: asked.text, content: '' });
    case 'comment':
      return comments.add(pick(asked.at), asked.text);
    case 'remove':
      return posts.remove(pick(asked.at));
    case 'comments':
      return allOf(comments.ofPost(pick(asked.at)));
    case 'change':
      return articles.change(asked.at, changing({ changed: true }));
    case 'save': {
      const id = asked.id === undefined ? {} : { id: asked.id };
      return articles.save(toDraft({ title: asked.text, ...id }));
    }
    case 'todo':
      return todos.create({ title: asked.text, completed: asked.done });
    case 'posts':
      return allOf(posts.all);
    case 'changeAll':
      return articles.changeAll((found) => found.map(changing({ all: true })));
    case 'articles':
      return allOf(articles.all);
    case 'todos':
      return allOf(todos.all);
    case 'together': {
      const authorIds = driverOptions().initial.authors.map(({ id }) => id);
      return Promise.all([
        ...ids.map(async (id) => posts.find(id)),
        ...ids.map(async (id) => allOf(comments.ofPost(id))),
        ...authorIds.map(async (id) => allOf(posts.ofAuthor(id))),
        ...authorIds.map(async (id) => authors.find(id)),
      ]);
    }
  }
}
