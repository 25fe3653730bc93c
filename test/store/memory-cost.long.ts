/** The store in memory counts at least what its records take, whatever they look like. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distUrl, runInHeap } from '../support/small-heap.js';

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
  });
  const held = () => { gc(); const { heapUsed, external } = process.memoryUsage(); return heapUsed + external; };
  let names = 0;
  const name = () => 'n' + (names += 1).toString(36);
  const list = (length, item) => Array.from({ length }, (_, index) => item(index)).join(',');
  const nest = (levels, wrap) => { let text = '1'; for (let at = 0; at < levels; at += 1) text = wrap(text); return text; };
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

test('articles of every shape are counted with what they take', () => {
  const found = ratios(`
    const shapes = {
      names: () => '{' + list(3_000, () => '"' + name() + '":1') + '}',
      'objects of one name': () => '[' + list(1_500, () => '{"' + name() + '":1}') + ']',
      'objects of names': () => '[' + list(100, () => '{' + list(20, () => '"' + name() + '":1.5') + '}') + ']',
      'names of two bytes': () => '[' + list(1_500, () => '{"' + name() + '世":""}') + ']',
      'objects in objects': () => '[' + list(20, () => nest(60, (text) => '{"' + name() + '":' + text + '}')) + ']',
      'arrays in arrays': () => '[' + list(80, () => nest(60, (text) => '[' + text + ']')) + ']',
      'empty objects': () => '[' + list(3_000, () => '{}') + ']',
      'empty arrays': () => '[' + list(3_000, () => '[]') + ']',
      'whole numbers': () => '[' + list(10_000, () => '1') + ']',
      'decimals in arrays': () => '[' + list(3_000, () => '[1.5]') + ']',
      'decimals beside others': () => '[[],' + list(10_000, () => '1.5') + ']',
      'short texts': () => '[' + list(3_000, (index) => '"' + index + 'é"') + ']',
      'short texts of two bytes': () => '[' + list(3_000, (index) => '"' + index + '世"') + ']',
      'a long text': () => '"' + 'x'.repeat(500_000) + '"',
      'a long text of two bytes': () => '"' + '世'.repeat(300_000) + '"',
      'numbers as names': () => '{' + list(3_000, (index) => '"' + index * 17 + '":1') + '}',
      'a usual one': () => '[' + list(900, (index) => '{"id":' + index + ',"tags":["a"],"price":1.5}') + ']',
      ...Object.fromEntries([9, 31, 33, 34, 1023, 1024, 4294967294].map((index) =>
        ['names such as ' + index, () => '[' + list(1_000, () => '{"' + index + '":1.5}') + ']'])),
    };
    for (const [what, shape] of Object.entries(shapes)) {
      measure(what, ({ articles }) => articles.save(JSON.parse('{"title":"a","more":' + shape() + '}')));
    }
    measure('small', ({ articles }) => articles.save({ title: 'a', [name()]: 1 }));
    measure('a number as a name', ({ articles }) => articles.save({ title: 'a', 1023: 1 }));
    measure('changed', ({ articles }, count) => {
      articles.save({ title: 'a' });
      articles.change(count + 1, (article) => ({ ...article, 300: { [name()]: 2 } }));
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
    measure('articles', ({ articles }) => articles.save({ title: cut() }));
  `);
  assertCovered(found);
});
