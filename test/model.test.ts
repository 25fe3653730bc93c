/**
 * Random histories through every endpoint, beside a model of what the service should hold. Writes
 * are sent without a key, under keys, and again because their answer is lost. After each step both
 * endpoints are asked for everything, so that none shows what another has changed too late.
 *
 *     MODEL_RUNS=1000 MODEL_SEED=7 node --test dist-test/model.test.js
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { post as askGraphql } from './support/graphql-http.ts';
import { rounds } from './support/long.ts';
import { create, createDeliveries, deliveries } from './support/model-client.ts';
import { expectStatus, mutate, sendPatch } from './support/model-client.ts';
import { startServer, type TestServer } from './support/server.ts';
import { type StorePlace, stores } from './support/stores.ts';
import { anyCharacter } from './support/texts.ts';

const numRuns = rounds('MODEL_RUNS', { short: 6, long: 200 });
const seed = Number(process.env['MODEL_SEED'] ?? Date.now() % 2 ** 31);

type Document = Record<string, unknown>;

interface ModelPost {
  readonly id: string;
  title: string;
  content: string;
  /** Oldest first. */
  readonly comments: { readonly id: string; readonly content: string }[];
}

/** The service, and what it should hold. */
interface World {
  server: TestServer;
  /** Oldest first. */
  posts: ModelPost[];
  /** Comments that went with their posts. */
  readonly gone: string[];
  readonly todos: Document[];
  readonly articles: Map<number, Document>;
  /** The highest id that the service has given to an article. */
  counter: number;
}

/** The articles by id, as both the list and a patch of it see them. */
function articlesOf({ articles }: World): Document[] {
  return [...articles].toSorted(([a], [b]) => a - b).map(([, article]) => article);
}

/** What a step is made of shows in the report of a history that fails. */
function step<T>(given: fc.Arbitrary<T>, take: (given: T, world: World) => Promise<unknown>) {
  return given.map((made) => ({ made, take: (world: World) => take(made, world) }));
}

/** Any characters, and never blank (R8). */
const text = fc.string({ unit: anyCharacter, maxLength: 12 }).map((rest) => `a${rest}`);
/** Chooses among what there is; 0 is what is not there. */
const which = fc.nat({ max: 12 });
const overRest = fc.boolean();
const holds = fc.boolean();
const options = { requiredKeys: [] as never[], noNullPrototype: true };
const names = fc.record({ givenName: text, familyName: text }, options);
const article = fc.record(
  { id: fc.integer({ min: 1, max: 8 }), author: names, content: text, tags: fc.array(text) },
  options,
);

const missing = '019b8d5e-9c00-7000-8000-00000000ffff';

const post = step(fc.tuple(overRest, text, text), async ([isRest, title, content], world) => {
  const { server, posts } = world;
  const [status, id] = isRest
    ? await create(server, '/posts', { title, content })
    : await mutate(server, 'createPost(createPostInput: $input)', { title, content });
  assert.equal(status, 201);
  posts.push({ id, title, content, comments: [] });
});

const comment = step(fc.tuple(overRest, which, text), async ([isRest, place, content], world) => {
  const { server, posts } = world;
  const found = choose(posts, place);
  const postId = found?.id ?? missing;
  const [status, id] = isRest
    ? await create(server, `/posts/${postId}/comments`, { content })
    : await mutate(server, 'addComment(commentInput: $input)', { postId, content });
  assert.equal(status, found === undefined ? 404 : 201);
  found?.comments.push({ id, content });
});

const change = step(fc.tuple(which, text), async ([place, title], { server, posts }) => {
  const found = choose(posts, place);
  const body = { title, content: 'changed' };
  const path = `/posts/${found?.id ?? missing}`;
  await expectStatus(server.send('PUT', path, body), found === undefined ? 404 : 204);
  if (found !== undefined) Object.assign(found, body);
});

/** R7. */
const remove = step(which, async (place, world) => {
  const found = choose(world.posts, place);
  const removing = world.server.fetch(`/posts/${found?.id ?? missing}`, { method: 'DELETE' });
  await expectStatus(removing, found === undefined ? 404 : 204);
  world.posts = world.posts.filter((each) => each !== found);
  world.gone.push(...(found?.comments ?? []).map(({ id }) => id));
});

const todo = step(fc.tuple(text, fc.boolean()), async ([title, completed], { server, todos }) => {
  await expectStatus(server.send('POST', '/api/todos', { title, completed }), 201);
  todos.push({ title, completed });
});

/** R15: the next counter value that is not taken, unless the article brings its own. */
const save = step(fc.tuple(text, article), async ([title, rest], world) => {
  let { id } = rest;
  if (id === undefined) {
    for (id = world.counter + 1; world.articles.has(id);) id += 1;
    world.counter = id;
  }
  const given = { ...rest, title };
  const response = await expectStatus(world.server.send('POST', '/api/articles', given), 201);
  assert.equal(response.headers.get('location'), `/articles/${id}`);
  world.articles.set(id, { ...given, id });
});

const patch = step(fc.tuple(which, text, holds), async ([place, note, isWhole], world) => {
  const found = choose(articlesOf(world), place);
  const operations: object[] = [{ op: 'add', path: '/note', value: note }];
  if (!isWhole) operations.push({ op: 'remove', path: '/nothing' });
  const status = isWhole ? 204 : 409;
  const path = `/api/articles/${Number(found?.['id'] ?? 999)}`;
  const sent = sendPatch(world.server, path, operations);
  await expectStatus(sent, found === undefined ? 404 : status);
  if (found !== undefined && isWhole) found['note'] = note;
});

const patchAll = step(fc.tuple(text, holds), async ([title, isWhole], world) => {
  const operations: object[] = articlesOf(world).map((_, index) => {
    return { op: 'replace', path: `/${index}/title`, value: `${title}${index}` };
  });
  if (!isWhole) operations.push({ op: 'test', path: '/0/title', value: 'no' });
  const sent = sendPatch(world.server, '/api/articles', operations);
  await expectStatus(sent, isWhole ? 204 : 409);
  for (const [index, each] of articlesOf(world).entries()) {
    if (isWhole) each['title'] = `${title}${index}`;
  }
});

const nullable = fc.option(text, { nil: null });
const mergePatch = fc.record({ title: text, content: nullable, note: nullable }, options);

const merge = step(fc.tuple(which, mergePatch), async ([place, body], { server, ...world }) => {
  const found = choose([...world.articles.values()], place);
  const path = `/api/articles/${Number(found?.['id'] ?? 999)}`;
  const sent = sendPatch(server, path, body);
  await expectStatus(sent, found === undefined ? 404 : 204);
  for (const [name, value] of Object.entries(body)) {
    if (value !== null) Object.assign(found ?? {}, { [name]: value });
    else if (found !== undefined) delete found[name];
  }
});

/** A refused request changes nothing (R6). */
const refused = step(which, async (place, { server, posts }) => {
  const id = choose(posts, place)?.id;
  await expectStatus(server.send('POST', '/posts', { title: ' ', content: 'x' }), 422);
  await expectStatus(server.send('POST', '/api/todos', { title: 1 }), 422);
  await expectStatus(server.send('POST', '/api/articles', { id: 1, title: '' }), 422);
  if (id === undefined) return;
  await expectStatus(server.send('PUT', `/posts/${id}`, { title: 'x' }), 422);
  await expectStatus(server.send('POST', `/posts/${id}/comments`, {}), 422);
});

// Posts and comments come up more often than what changes them.
const written = fc.oneof(post, comment);
const others = [change, remove, todo, save, patch, patchAll, merge, refused];
const history = fc.array(
  fc.tuple(fc.constantFrom(...deliveries), fc.oneof({ arbitrary: written, weight: 6 }, ...others)),
  { minLength: 5, maxLength: 25 },
);

for (const { name, skip, newUrl } of stores) {
  const histories = name === 'in memory' ? numRuns : Math.ceil(numRuns / 3);
  test(`any history leaves what the model says, ${name}`, { skip }, async (t) => {
    t.diagnostic(`MODEL_SEED=${seed}, ${histories} histories`);
    await check(histories, newUrl);
  });
}

async function check(histories: number, newUrl: StorePlace['newUrl']): Promise<void> {
  const property = fc.asyncProperty(history, async (steps) => {
    const ends: (() => Promise<void>)[] = [];
    const ending = { after: (end: () => Promise<void>) => ends.push(end) };
    const env = { DEMO_DATA: 'false', STORE_URL: await newUrl(ending) };
    const server = await startServer(ending, { env });
    try {
      const articles = await json(server, '/api/articles');
      const todos = without(await json(server, '/api/todos'), 'id');
      const byId = new Map(articles.map((each) => [Number(each['id']), each]));
      const world: World = { server, posts: [], gone: [], todos, articles: byId, counter: 0 };
      const deliver = createDeliveries(server);
      for (const [delivery, { take }] of steps) {
        world.server = deliver(delivery);
        await take(world);
        world.server = server;
        await compare(world);
      }
    } finally {
      for (const end of ends) await end();
    }
  });
  await fc.assert(property, { numRuns: histories, seed });
}

/** Everything, by both endpoints. */
async function compare(world: World): Promise<void> {
  const { server } = world;
  const posts = world.posts.toReversed();
  const rest = await json(server, '/posts');
  assert.deepEqual(
    without(rest, 'createdAt'),
    posts.map(({ id, title, content }) => ({ id, title, content, status: 'DRAFT' })),
  );
  const query = '{ allPosts { id title content status authorId comments { id content postId } } }';
  const allPosts = posts.map(({ id, title, content, comments }) => ({
    id,
    title: title.toUpperCase(),
    content,
    status: 'DRAFT',
    authorId: null,
    comments: comments.map((each) => ({ ...each, postId: id })),
  }));
  assert.deepEqual((await askGraphql(server, { query })).body, { data: { allPosts } });
  for (const each of posts.slice(0, 3)) await comparePost(server, each);
  const gone = world.gone.at(-1);
  if (gone !== undefined) await expectStatus(server.fetch(`/comments/${gone}`), 404);
  assert.deepEqual(await json(server, '/api/articles'), articlesOf(world));
  assert.deepEqual(without(await json(server, '/api/todos'), 'id'), world.todos);
}

/** One post, by every way to it alone. */
async function comparePost(server: TestServer, of: ModelPost): Promise<void> {
  const { id, title, content, comments } = of;
  const { createdAt: _at, ...found } = (await json(server, `/posts/${id}`)) as unknown as Document;
  assert.deepEqual(found, { id, title, content, status: 'DRAFT' });
  assert.deepEqual(without(await json(server, `/posts/${id}/comments`), 'createdAt'), comments);
  const page = without(await json(server, `/posts/${id}/comments?limit=2`), 'createdAt');
  assert.deepEqual(page, comments.slice(0, 2));
  for (const each of comments.slice(-1)) {
    const one = await json(server, `/comments/${each.id}`);
    assert.deepEqual(one, { ...each, post: { id, title } });
  }
  const query = `{ postById(postId: "${id}") { title content comments { id content } } }`;
  const data = { postById: { title: title.toUpperCase(), content, comments } };
  assert.deepEqual((await askGraphql(server, { query })).body, { data });
}

/** What the service alone knows is left out. */
function without(records: readonly Document[], name: string): Document[] {
  return records.map(({ [name]: _left, ...rest }) => rest);
}

function choose<T>(items: readonly T[], number: number): T | undefined {
  return number === 0 ? undefined : items[number % items.length];
}

async function json(server: TestServer, path: string): Promise<Document[]> {
  return (await (await expectStatus(server.fetch(path), 200)).json()) as Document[];
}
