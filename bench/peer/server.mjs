/**
 * The peer: the routes of Inkwell that are compared, as a user of Fastify and Mercurius writes them,
 * over the same kinds of stores. `STORE_URL`: empty (in memory), `sqlite:///path` or `postgres://…`;
 * `JIT=1` compiles queries; `PORT` and `UPLOAD_DIR` as in Inkwell.
 */

import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import multipart from '@fastify/multipart';
import patching from 'fast-json-patch';
import Fastify from 'fastify';
import mercurius from 'mercurius';
import { openStore } from './stores.mjs';

const { PORT, STORE_URL = '', UPLOAD_DIR = '/tmp', JIT } = process.env;
const store = await openStore(STORE_URL);
const app = Fastify();

const text = { type: 'string', minLength: 1 };
/** What is sent of a post; with a schema Fastify writes JSON by a function made for it. */
const post = {
  type: 'object',
  properties: Object.fromEntries(
    ['id', 'title', 'content', 'status', 'createdAt'].map((name) => [name, { type: 'string' }]),
  ),
};
const onePost = { schema: { response: { 200: post } } };
const manyPosts = { schema: { response: { 200: { type: 'array', items: post } } } };
const bodyOf = (properties) => ({
  schema: { body: { type: 'object', required: Object.keys(properties), properties } },
});
const now = () => new Date().toISOString().slice(0, -1);
const notFound = (reply) => reply.code(404).send({ code: 'not_found' });

/** @type {Record<string, object>} */
const articles = {
  1: {
    id: 1,
    title: 'On small servers',
    author: { givenName: 'Ada', familyName: 'Lovelace' },
    tags: ['servers', 'simplicity'],
    content: 'A server that one person can read.',
  },
};

async function createPost({ title, content }) {
  const id = randomUUID();
  await store.addPost({ id, title, content, status: 'DRAFT', createdAt: now() });
  return id;
}

app.get('/hello', () => 'Hello');

app.get('/posts', manyPosts, ({ query }) =>
  store.page(query.limit ? Number(query.limit) : undefined, query.after),
);

app.get('/posts/:id', onePost, async ({ params }, reply) => {
  return (await store.post(params.id)) ?? notFound(reply);
});

app.post('/posts', bodyOf({ title: text, content: text }), async ({ body }, reply) => {
  const id = await createPost(body);
  return reply.code(201).header('location', `/posts/${id}`).send();
});

app.post('/posts/:id/comments', bodyOf({ content: text }), async ({ params, body }, reply) => {
  const comment = { id: randomUUID(), postId: params.id, content: body.content, createdAt: now() };
  if (!(await store.addComment(comment))) return notFound(reply);
  return reply.code(201).header('location', `/comments/${comment.id}`).send();
});

app.addContentTypeParser(
  'application/json-patch+json',
  { parseAs: 'string' },
  app.getDefaultJsonParser('error', 'error'),
);
app.patch('/api/articles/:id', async ({ params, body }, reply) => {
  const article = articles[params.id];
  if (article === undefined) return notFound(reply);
  const { newDocument } = patching.applyPatch(article, body, true, false, true);
  articles[params.id] = newDocument;
  return reply.code(204).send();
});

await app.register(multipart, { limits: { fileSize: 1024 ** 3 } });
app.post('/api/multiparts/list', async (request, reply) => {
  for await (const part of request.files()) {
    await pipeline(part.file, createWriteStream(join(UPLOAD_DIR, randomUUID())));
  }
  return reply.send();
});

await app.register(mercurius, {
  jit: JIT === '1' ? 1 : 0,
  allowBatchedQueries: true,
  schema: `
    type Query {
      allPosts(first: Int, after: String): [Post!]!
      postById(postId: String!): Post
    }
    type Mutation { createPost(createPostInput: CreatePostInput!): String! }
    input CreatePostInput { title: String! content: String! }
    type Post {
      id: ID! title: String! content: String! status: String! createdAt: String!
      author: Author comments: [Comment!]!
    }
    type Author { id: ID! name: String! }
    type Comment { id: ID! content: String! }`,
  resolvers: {
    Query: {
      allPosts: (_, { first, after }) => store.page(first, after),
      postById: (_, { postId }) => store.post(postId),
    },
    Mutation: { createPost: (_, { createPostInput }) => createPost(createPostInput) },
    // The title in capitals, as Inkwell's schema has it.
    Post: { title: ({ title }) => title.toUpperCase() },
  },
  // One call for all posts of a response.
  loaders: {
    Post: {
      author: async (queries) => {
        const authors = await store.authors(queries.map(({ obj }) => obj.authorId));
        return queries.map(({ obj }) => authors.get(obj.authorId));
      },
      comments: async (queries) => {
        const comments = await store.commentsOf(queries.map(({ obj }) => obj.id));
        return queries.map(({ obj }) => comments.get(obj.id) ?? []);
      },
    },
  },
});

await app.listen({ port: Number(PORT), host: '127.0.0.1' });
process.on('SIGTERM', () => process.exit(0));
