/** What every driver does with changes of some members (R37): part of the suite in contract.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Store } from '../../dist/store/store.js';
import { allOf } from '../support/lists.js';

const nobody = '00000000-0000-7000-8000-0000000000ff';

/** `open` gives a store that holds no records. */
export function testChanges(open: (context: TestContext) => Promise<Store>): void {
  test('posts and todos are changed in part, todos and comments removed (R37)', async (t) => {
    const { posts, comments, todos } = await open(t);
    const post = await posts.create({ title: 'a', content: 'b', authorId: null });
    assert.equal(await posts.update(post.id, { status: 'PUBLISHED' }), true);
    assert.deepEqual(await posts.find(post.id), { ...post, status: 'PUBLISHED' });
    assert.equal(await posts.update(post.id, { title: 'b' }), true);
    assert.equal(await posts.update(post.id, {}), true);
    const changed = { ...post, title: 'b', status: 'PUBLISHED' };
    assert.deepEqual(await allOf(posts.all), [changed]);

    const added = [];
    for (const content of ['c', 'd', 'e']) added.push(await comments.add(post.id, content));
    const [first, second, third] = added;
    assert.equal(await comments.remove(second?.id ?? ''), true);
    assert.equal(await comments.remove(second?.id ?? ''), false);
    assert.equal(await comments.find(second?.id ?? ''), undefined);
    assert.deepEqual(await allOf(comments.ofPost(post.id)), [first, third]);

    const todo = await todos.create({ title: 'f\0', completed: false });
    const other = await todos.create({ title: 'g', completed: false });
    assert.equal(await todos.update(todo.id, { completed: true }), true);
    const seen = { title: 'f\0', completed: true };
    assert.deepEqual(await todos.find(todo.id), { id: todo.id, ...seen });
    assert.equal(await todos.update(todo.id, { title: 'h' }, { ...seen, completed: false }), false);
    assert.equal(await todos.update(todo.id, { title: 'h' }, seen), true);
    assert.equal(await todos.remove(todo.id, seen), false);
    assert.deepEqual(await allOf(todos.all), [{ ...seen, id: todo.id, title: 'h' }, other]);
    assert.equal(await todos.remove(todo.id, { ...seen, title: 'h' }), true);
    assert.equal(await todos.remove(todo.id), false);
    assert.deepEqual(await allOf(todos.all), [other]);
    for (const { update } of [posts, todos]) assert.equal(await update(nobody, {}), false);
  });
}
