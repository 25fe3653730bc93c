/** The store in memory counts at least what its records take, whatever they look like. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distUrl, runInHeap } from '../support/small-heap.ts';

/** Runs in a process of its own: `fill` fills a new store until it is full. */
const start = `
  import { createMemoryStore } from '${distUrl('store/memory.js')}';
  import { createIdSource } from '${distUrl('domain/ids.js')}';
  import { formatLocalDateTime } from '${distUrl('domain/local-date-time.js')}';
  const bytesMax = 8 * 1024 * 1024;
  const nothing = { authors: [], accounts: [], posts: [], comments: [], todos: [], articles: [] };
  let time = 1.8e12;
  const now = () => new Date((time += 7));
  const open = () => createMemoryStore({
    createId: createIdSource(now), now: () => formatLocalDateTime(now()), initial: nothing, bytesMax,
    run: (work) => work(),
  });
  const held = () => { gc(); gc(); const { heapUsed, external } = process.memoryUsage(); return heapUsed + external; };
  let names = 0;
  const name = () => 'n' + (names += 1).toString(36);
  const list = (length, item) => Array.from({ length }, (_, index) => item(index)).join(',');
  const fill = (add) => {
    const store = (globalThis.kept = open());
    for (let count = 0; ; count += 1) {
      try { add(store, count); } catch (error) { if (error.code === 'storage_full') return count; throw error; }
    }
  };
  const ratios = {};
  const measure = (what, add) => {
    globalThis.kept = undefined;
    const before = held();
    const count = fill(add);
    ratios[what] = [count, (held() - before) / bytesMax];
  };
`;

type Ratios = Readonly<Record<string, readonly [count: number, ofCounted: number]>>;

/** Each kind with how many records fitted, and what they took of what was counted. */
function ratios(script: string): Ratios {
  return JSON.parse(
    runInHeap(512, `${start} ${script} console.log(JSON.stringify(ratios));`),
  ) as Ratios;
}

function assertCovered(found: Ratios): void {
  for (const [what, [count, ofCounted]] of Object.entries(found)) {
    assert.ok(count > 0, what);
    assert.ok(ofCounted <= 1, `${what}: ${ofCounted} of what was counted`);
  }
}

test('articles are counted with what they take', () => {
  const found = ratios(`
    const draft = (value) => ({ id: value.id, json: JSON.stringify(value) });
    measure('small', ({ articles }) => articles.save(draft({ title: 'a', [name()]: 1 })));
    measure('long', ({ articles }) => articles.save(draft({ title: 'a', text: 'x'.repeat(500_000) })));
    measure('two bytes', ({ articles }) => articles.save(draft({ title: 'a', text: '世'.repeat(300_000) })));
    measure('changed', ({ articles }, count) => {
      articles.save(draft({ title: 'a' }));
      articles.change(count + 1, ({ id }) => draft({ id, title: 'a', [name()]: 2 }));
    });
  `);
  assertCovered(found);
});

test('small records are counted with their places in maps and lists', () => {
  const found = ratios(`
    const draft = { title: 'a', content: 'b', authorId: null };
    measure('posts', ({ posts }) => posts.create(draft));
    measure('posts of authors', ({ posts }, count) => posts.create({ ...draft, authorId: 'author' + count % 100 }));
    measure('comments', ({ posts, comments }) => {
      comments.add((globalThis.post ??= {}).of === globalThis.kept ? post.id : (globalThis.post = { of: kept, id: posts.create(draft).id }).id, 'c');
    });
    measure('posts of two comments', ({ posts, comments }) => {
      const { id } = posts.create(draft);
      comments.add(id, 'c');
      comments.add(id, 'c');
    });
    measure('todos', ({ todos }) => todos.create({ title: 'a', completed: false }));
  `);
  assertCovered(found);
});

test('a text that was cut out of a longer one does not keep that', () => {
  const found = ratios(`
    // As the literals of a GraphQL document are.
    const cut = () => ('x'.repeat(20_000) + name() + 'y'.repeat(40)).slice(-20);
    measure('posts', ({ posts }) => posts.create({ title: cut(), content: cut(), authorId: null }));
    measure('comments', ({ posts, comments }) => {
      const { id } = posts.create({ title: 'a', content: 'b', authorId: null });
      comments.add((cut() + id).slice(-36), cut());
    });
    measure('todos', ({ todos }) => todos.create({ title: cut(), completed: true }));
    measure('posts that change', ({ posts }) => {
      const { id } = posts.create({ title: 'a', content: 'b', authorId: null });
      posts.update(id, { title: cut(), content: cut() });
    });
    measure('articles', ({ articles }) => articles.save({ id: undefined, json: ('{"title":"a","x":"' + cut() + '"}').slice(0) }));
  `);
  assertCovered(found);
});
