/**
 * Random histories of reads and writes over all areas: every response that may be a kept one beside
 * the same made anew, over REST and GraphQL, on every store that is at hand.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { readConfig } from '../../dist/config.js';
import { createAddComment, createTopic } from '../../dist/domain/comments.js';
import { createIdSource } from '../../dist/domain/scalars.js';
import { AppError } from '../../dist/errors.js';
import { createEngine } from '../../dist/graphql/engine.js';
import { createHttpEndpoint } from '../../dist/graphql/endpoint.js';
import { createArticleHandlers } from '../../dist/handlers/articles.js';
import { createCommentHandlers } from '../../dist/handlers/comments.js';
import { createPostHandlers } from '../../dist/handlers/posts.js';
import { createTodoHandlers } from '../../dist/handlers/todos.js';
import { allOf } from '../support/lists.js';
import type { Handler, HttpResponse, HttpRequest } from '../../dist/http/message.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { createToListResponse } from '../../dist/records/list-response.js';
import { createRecordResponses } from '../../dist/records/records.js';
import {
  createRecordTexts,
  createResponseCache,
  type Reading,
} from '../../dist/records/response-cache.js';
import type { Comment } from '../../dist/store/model.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { rounds } from '../support/long.js';
import { unweighed } from '../support/topic.js';
import { driverOptions } from '../support/driver-options.js';
import { onPostgres, stores } from '../support/stores.js';
import { changing, toDraft } from '../support/article-texts.js';

const numRuns = rounds('ANSWER_HISTORIES', { short: 15, long: 500 });

const queries: readonly string[] = [
  '{ allPosts { id title } }',
  '{ allPosts(first: 1) { id title comments { id } } }',
  '{ allPosts { title author { name } comments { content } } }',
  '{ allPosts { author { email posts { title comments { id } } } } }',
  '{ __schema { queryType { name } } }',
  '[{"query":"{ allPosts { id } }"},{"query":"{ allPosts { comments { content } } }"}]',
];

/** What the service answers to reads, with a cache of `bytesMax` over the store. */
function createReads(store: Store, bytesMax: number): (ids: Ids) => Promise<readonly string[]> {
  const config = readConfig({});
  const log = (): void => undefined;
  const responses = createResponseCache({ store, run: 'run', bytesMax });
  const topic = createTopic<Comment>({ ...unweighed, queueMax: 1_000 });
  const addComment = createAddComment(store, (comment) => topic.publish(comment));
  const toListResponse = createToListResponse(new MemoryPool(2 ** 30), 0);
  const toText = createRecordTexts(store.keepsObjects ? bytesMax : 0);
  const records = createRecordResponses({ responses, toListResponse, toText });
  const checkOwner = () => Promise.resolve();
  const viewerOf = (): undefined => undefined;
  const access = { checkOwner, viewerOf, writesNeedToken: false, readsNeedToken: false };
  const shared = { store, addComment, responses, records, config, ...access };
  const posts = createPostHandlers(shared);
  const ofComments = createCommentHandlers(shared);
  const todos = createTodoHandlers(shared);
  const articles = createArticleHandlers(shared);
  const pool = new MemoryPool(config.waitingBytesMax);
  const engine = createEngine({
    ...shared,
    commentAdded: topic,
    log,
    pool,
  });
  const streams = { size: 0, open: () => assert.fail('no stream'), close: () => undefined };
  const unused = { uploads: undefined as never, createUuid: createIdSource(() => new Date()) };
  const graphql = createHttpEndpoint({ ...shared, ...unused, engine, streams });

  const get = (handler: Handler, target: string, id = ''): Promise<string> => {
    const [path, query = ''] = target.replace('{id}', id).split('?');
    const request = { path, query, params: { id }, header: () => undefined };
    return textOf(async () => handler(request as unknown as HttpRequest));
  };
  const ask = (query: string): Promise<string> => {
    const body = Buffer.from(query.startsWith('[') ? query : JSON.stringify({ query }));
    const request = { id: 'test', method: 'POST', header: () => undefined, readBody: () => body };
    return textOf(async () => graphql.post(request as unknown as HttpRequest));
  };
  return ({ post, comment, todo }) =>
    Promise.all([
      get(posts.list, '/posts'),
      get(posts.list, '/posts?limit=2'),
      get(posts.list, `/posts?limit=1&after=${post}`),
      get(posts.list, '/posts?status=PUBLISHED'),
      get(posts.list, '/posts?limit=1&status=DRAFT'),
      get(posts.find, '/posts/{id}', post),
      get(ofComments.list, '/posts/{id}/comments', post),
      get(ofComments.list, '/posts/{id}/comments?limit=1', post),
      get(ofComments.find, '/comments/{id}', comment),
      get(todos.list, '/api/todos'),
      get(todos.list, `/api/todos?after=${todo}`),
      get(todos.find, '/api/todos/{id}', todo),
      get(articles.list, '/api/articles'),
      get(articles.list, '/api/articles?limit=1'),
      get(articles.find, '/api/articles/{id}', '1'),
      ask(`{ postById(postId: "${post}") { title author { name } comments { content } } }`),
      ask(`{ allPosts(after: "${post}") { id } }`),
      ask('{ allPosts(status: PUBLISHED) { id } }'),
      ...queries.map(ask),
    ]);
}

async function textOf(response: () => Promise<HttpResponse>): Promise<string> {
  try {
    const { status, headers, body } = await response();
    assert.ok(typeof body === 'string' || Buffer.isBuffer(body));
    const link = headers.indexOf('Link');
    return `${status} ${body.toString()} ${link < 0 ? '' : headers[link + 1]}`;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.code;
  }
}

/** The records that are asked for one by one: the last ones that were written. */
interface Ids {
  post: string;
  comment: string;
  todo: string;
}

type Write = (store: Store, ids: Ids, text: string) => Promise<unknown>;

const writes: Readonly<Record<string, Write>> = {
  async createPost({ posts }, ids, title) {
    const post = await posts.create({ title, content: 'a', authorId: null });
    ids.post = post.id;
  },
  updatePost: async ({ posts }, { post }, title) => posts.update(post, { title, content: title }),
  publishPost: async ({ posts }, { post }) => posts.update(post, { status: 'PUBLISHED' }),
  removePost: async ({ posts }, { post }) => posts.remove(post),
  async comment({ comments }, ids, content) {
    const comment = await comments.add(ids.post, content);
    ids.comment = comment?.id ?? ids.comment;
  },
  async createTodo({ todos }, ids, title) {
    ids.todo = (await todos.create({ title, completed: false })).id;
  },
  saveArticle: async ({ articles }, _ids, title) => articles.save(toDraft({ title })),
  changeArticle: async ({ articles }, _ids, title) => articles.change(1, changing({ title })),
  changeArticles: async ({ articles }, _ids, title) =>
    articles.changeAll((all) => all.map(changing({ title }))),
};

interface Step {
  readonly write: string;
  readonly text: string;
  /** By the other process, where the store has one. */
  readonly isForeign: boolean;
  /** Read while the write is under way, too. */
  readonly isBeside: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  write: fc.constantFrom(...Object.keys(writes)),
  text: fc.string({ maxLength: 8 }),
  isForeign: fc.boolean(),
  isBeside: fc.boolean(),
});

/** `foreign`: the same records, over a connection of its own. */
async function compare(store: Store, foreign: Store, steps: readonly Step[]): Promise<void> {
  const [kept, anew] = [createReads(store, 1_000_000), createReads(store, 0)];
  const [first] = await allOf(store.posts.all);
  const ids: Ids = { post: first?.id ?? '', comment: first?.id ?? '', todo: first?.id ?? '' };
  for (const { write, text, isForeign, isBeside } of steps) {
    const writing = writes[write]?.(isForeign ? foreign : store, ids, text);
    const reading = isBeside ? kept({ ...ids }) : undefined;
    await Promise.all([writing, reading]);
    const expected = await anew(ids);
    assert.deepEqual(await kept(ids), expected);
    assert.deepEqual(await kept(ids), expected);
  }
}

describe('no kept response is older than the last acknowledged write', () => {
  for (const { name, skip, newUrl } of stores.filter((each) => each !== onPostgres)) {
    it(name, { skip }, async (context) => {
      const history = fc.array(step, { minLength: 1, maxLength: 15 });
      const property = fc.asyncProperty(history, async (steps) => {
        const url = await newUrl(context);
        const store = await openStore(url, driverOptions());
        const foreign = url === 'memory:' ? store : await openStore(url, driverOptions());
        try {
          await compare(store, foreign, steps);
        } finally {
          await Promise.all([store.close(), foreign.close()]);
        }
      });
      await fc.assert(property, { numRuns });
    });
  }
});

it('a write to one area leaves the responses from the others', async () => {
  const store = await openStore('memory:', driverOptions());
  const [post] = await allOf(store.posts.all);
  const id = post?.id ?? '';
  const responses = createResponseCache({ store, run: 'run', bytesMax: 1_000_000 });
  const asked: Readonly<Record<string, (records: Reading) => unknown>> = {
    posts: ({ posts }) => posts.all.read(),
    comments: ({ comments }) => comments.ofPost(id).read(),
    todos: ({ todos }) => todos.all.read(),
    articles: ({ articles }) => articles.all.read(),
    nothing: () => undefined,
  };
  const remade = (): readonly string[] => {
    const names: string[] = [];
    for (const [name, read] of Object.entries(asked)) {
      if (responses.find(name) !== undefined) continue;
      names.push(name);
      const records = responses.read();
      read(records);
      responses.store(name, records, { status: 200, headers: [], body: name });
    }
    return names;
  };
  const remadeAfter = async (write: string): Promise<readonly string[]> => {
    await writes[write]?.(store, { post: id, comment: '', todo: '' }, 'text');
    return remade();
  };
  assert.deepEqual(remade(), Object.keys(asked));
  assert.deepEqual(remade(), []);
  assert.deepEqual(await remadeAfter('comment'), ['comments']);
  assert.deepEqual(await remadeAfter('createTodo'), ['todos']);
  assert.deepEqual(await remadeAfter('changeArticle'), ['articles']);
  assert.deepEqual(await remadeAfter('updatePost'), ['posts', 'comments']);
});
