/**
 * Random histories through every endpoint, beside a model of what the service should hold. After each
 * step both endpoints are asked for everything, so that none shows what another has changed too late.
 *
 *     MODEL_RUNS=1000 MODEL_SEED=7 node --test dist-test/model.test.js
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  articlesOf,
  type Document,
  merge,
  type Model,
  removePost,
  saveArticle,
  type Step,
  step,
} from './support/model.js';
import { rounds } from './support/long.js';
import { startServer, type TestServer } from './support/server.js';

const numRuns = rounds('MODEL_RUNS', { short: 6, long: 200 });
const seed = Number(process.env['MODEL_SEED'] ?? Date.now() % 2 ** 31);

const missing = '019b8d5e-9c00-7000-8000-00000000ffff';
const jsonPatchType = 'application/json-patch+json';
const mergePatchType = 'application/merge-patch+json';

test('any history of writes leaves what the model says, at both endpoints', async (t) => {
  t.diagnostic(`MODEL_SEED=${seed}, ${numRuns} histories`);
  const history = fc.array(step, { minLength: 5, maxLength: 25 });
  const property = fc.asyncProperty(history, async (steps) => {
    const ends: (() => Promise<void>)[] = [];
    const server = await startServer(
      { after: (end) => ends.push(end) },
      { env: { DEMO_DATA: 'false' } },
    );
    try {
      const model = await readModel(server);
      for (const each of steps) {
        await take(each, model, server);
        await compare(model, server);
      }
    } finally {
      for (const end of ends) await end();
    }
  });
  await fc.assert(property, { numRuns, seed });
});

async function readModel(server: TestServer): Promise<Model> {
  const articles = await json<Document[]>(server, '/api/articles');
  const todos = await json<Model['todos']>(server, '/api/todos');
  return {
    posts: [],
    gone: [],
    todos: todos.map(({ title, completed }) => ({ title, completed })),
    articles: new Map(articles.map((each) => [Number(each['id']), each])),
    counter: 0,
  };
}

/** Does the step at an endpoint and in the model, and holds the response to it. */
async function take(action: Step, model: Model, server: TestServer): Promise<void> {
  switch (action.kind) {
    case 'post':
      return post(action, model, server);
    case 'comment':
      return comment(action, model, server);
    case 'change': {
      const found = choose(model.posts, action.which);
      const body = { title: action.title, content: 'changed' };
      const path = `/posts/${found?.id ?? missing}`;
      await expectStatus(server.send('PUT', path, body), found === undefined ? 404 : 204);
      if (found !== undefined) Object.assign(found, body);
      return;
    }
    case 'remove': {
      const id = choose(model.posts, action.which)?.id ?? missing;
      const response = server.fetch(`/posts/${id}`, { method: 'DELETE' });
      await expectStatus(response, removePost(model, id) ? 204 : 404);
      return;
    }
    case 'todo': {
      const { title, completed } = action;
      await expectStatus(server.send('POST', '/api/todos', { title, completed }), 201);
      model.todos.push({ title, completed });
      return;
    }
    case 'article': {
      const response = await expectStatus(
        server.send('POST', '/api/articles', action.article),
        201,
      );
      const id = saveArticle(model, action.article);
      assert.equal(response.headers.get('location'), `/articles/${id}`);
      return;
    }
    case 'patch':
    case 'patchAll':
    case 'merge':
      return patch(action, model, server);
    case 'refused':
      return refuse(action, model, server);
    default:
      return action satisfies never;
  }
}

type StepOf<K extends Step['kind']> = Extract<Step, { readonly kind: K }>;

async function post(action: StepOf<'post'>, model: Model, server: TestServer): Promise<void> {
  const { title, content } = action;
  let id: string;
  if (action.endpoint === 'rest') {
    const response = await expectStatus(server.send('POST', '/posts', { title, content }), 201);
    id = response.headers.get('location')?.replace('/posts/', '') ?? '';
  } else {
    const query = 'mutation ($input: CreatePostInput!) { id: createPost(createPostInput: $input) }';
    id = String((await graphql(server, query, { input: { title, content } })).data?.['id']);
  }
  model.posts.push({ id, title, content, comments: [] });
}

async function comment(action: StepOf<'comment'>, model: Model, server: TestServer): Promise<void> {
  const { content } = action;
  const found = choose(model.posts, action.which);
  const postId = found?.id ?? missing;
  let id: string | undefined;
  if (action.endpoint === 'rest') {
    const response = server.send('POST', `/posts/${postId}/comments`, { content });
    const { headers } = await expectStatus(response, found === undefined ? 404 : 201);
    id = headers.get('location')?.replace('/comments/', '');
  } else {
    const query = 'mutation ($input: CommentInput!) { id: addComment(commentInput: $input) }';
    const { data, errors } = await graphql(server, query, { input: { postId, content } });
    assert.equal(errors?.[0]?.extensions.code, found === undefined ? 'NOT_FOUND' : undefined);
    id = data?.['id'] as string | undefined;
  }
  found?.comments.push({ id: id ?? '', content });
}

async function patch(
  action: StepOf<'patch' | 'patchAll' | 'merge'>,
  model: Model,
  server: TestServer,
): Promise<void> {
  const send = (path: string, type: string, body: unknown): Promise<Response> =>
    server.fetch(path, {
      method: 'PATCH',
      headers: { 'Content-Type': type },
      body: JSON.stringify(body),
    });
  const articles = articlesOf(model);
  if (action.kind === 'patchAll') {
    const operations: object[] = articles.map((_, index) => {
      return { op: 'replace', path: `/${index}/title`, value: `${action.title}${index}` };
    });
    if (!action.holds) operations.push({ op: 'test', path: '/0/title', value: 'no' });
    const response = send('/api/articles', jsonPatchType, operations);
    await expectStatus(response, action.holds ? 204 : 409);
    for (const [index, each] of articles.entries()) {
      if (action.holds) each['title'] = `${action.title}${index}`;
    }
    return;
  }
  const found = choose(articles, action.which);
  const path = `/api/articles/${Number(found?.['id'] ?? 999)}`;
  if (action.kind === 'merge') {
    const response = send(path, mergePatchType, action.patch);
    await expectStatus(response, found === undefined ? 404 : 204);
    if (found !== undefined) {
      model.articles.set(Number(found['id']), merge(found, action.patch));
    }
    return;
  }
  const operations: object[] = [{ op: 'add', path: '/note', value: action.note }];
  if (!action.holds) operations.push({ op: 'remove', path: '/nothing' });
  const status = action.holds ? 204 : 409;
  const response = send(path, jsonPatchType, operations);
  await expectStatus(response, found === undefined ? 404 : status);
  if (found !== undefined && action.holds) found['note'] = action.note;
}

/** A refused request changes nothing (R6). */
async function refuse(action: StepOf<'refused'>, model: Model, server: TestServer): Promise<void> {
  const id = choose(model.posts, action.which)?.id;
  await expectStatus(server.send('POST', '/posts', { title: ' ', content: 'x' }), 422);
  await expectStatus(server.send('POST', '/api/todos', { title: 1 }), 422);
  await expectStatus(server.send('POST', '/api/articles', { id: 1, title: '' }), 422);
  if (id === undefined) return;
  await expectStatus(server.send('PUT', `/posts/${id}`, { title: 'x' }), 422);
  await expectStatus(server.send('POST', `/posts/${id}/comments`, {}), 422);
}

/** Everything, by both endpoints. */
async function compare(model: Model, server: TestServer): Promise<void> {
  const posts = model.posts.toReversed();
  const rest = await json<Document[]>(server, '/posts');
  assert.deepEqual(
    without(rest, 'createdAt'),
    posts.map(({ id, title, content }) => ({ id, title, content, status: 'DRAFT' })),
  );
  const query = '{ allPosts { id title content status authorId comments { id content postId } } }';
  const { data } = await graphql(server, query);
  assert.deepEqual(
    data?.['allPosts'],
    posts.map(({ id, title, content, comments }) => ({
      id,
      title: title.toUpperCase(),
      content,
      status: 'DRAFT',
      authorId: null,
      comments: comments.map((each) => ({ ...each, postId: id })),
    })),
  );
  for (const { id, comments } of posts.slice(0, 3)) {
    const list = await json<Document[]>(server, `/posts/${id}/comments`);
    assert.deepEqual(without(list, 'createdAt'), comments);
  }
  const gone = model.gone.at(-1);
  if (gone !== undefined) await expectStatus(server.fetch(`/comments/${gone}`), 404);
  assert.deepEqual(await json(server, '/api/articles'), articlesOf(model));
  const todos = await json<Document[]>(server, '/api/todos');
  assert.deepEqual(without(todos, 'id'), model.todos);
}

/** What the service alone knows is left out. */
function without(records: readonly Document[], name: string): Document[] {
  return records.map((record) => {
    const members = Object.entries(record).filter(([each]) => each !== name);
    return Object.fromEntries(members);
  });
}

function choose<T>(items: readonly T[], number: number): T | undefined {
  return number === 0 ? undefined : items[number % items.length];
}

async function json<T>(server: TestServer, path: string): Promise<T> {
  return (await (await expectStatus(server.fetch(path), 200)).json()) as T;
}

async function expectStatus(pending: Promise<Response>, status: number): Promise<Response> {
  const response = await pending;
  assert.equal(response.status, status);
  // A response that nobody reads keeps its connection.
  if (status !== 200) await response.arrayBuffer();
  return response;
}

interface GraphqlBody {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
}

async function graphql(
  server: TestServer,
  query: string,
  variables: Record<string, unknown> = {},
): Promise<GraphqlBody> {
  const response = await server.send('POST', '/graphql', { query, variables });
  return (await response.json()) as GraphqlBody;
}
