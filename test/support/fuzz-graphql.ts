/** Good requests of GraphQL, by each of its ways in. */

import {
  field,
  file,
  form,
  type FuzzRequest,
  graphql,
  type Known,
  type Seed,
  send,
  socket,
} from './fuzz-request.js';

const listQuery = '{ allPosts { id title content author { name } comments { content } } }';
const findQuery =
  'query Find($id: String!) { postById(postId: $id) { ...P author { posts { ...P } } } } ' +
  'fragment P on Post { id title status createdAt @include(if: true) authorId }';
const createQuery = 'mutation ($input: CreatePostInput!) { createPost(createPostInput: $input) }';
const commentQuery = 'mutation ($input: CommentInput!) { addComment(commentInput: $input) }';
const uploadQuery = 'mutation ($file: Upload!) { upload(file: $file) }';
const introspection =
  '{ __schema { types { name fields { name type { name ofType { name } } } } } }';
const subscription = 'subscription { commentAdded { id content postId } }';

export const text = { title: 'Hello fuzz', content: 'A text — with "quotes", 😀 and\nlines' };

const pageQuery =
  'query ($first: Int, $after: ID) { allPosts(first: $first, after: $after) { id title } }';

export const graphqlSeeds: readonly Omit<Seed, 'route' | 'status'>[] = [
  { make: () => graphql(listQuery) },
  { make: ({ random, posts }) => graphql(findQuery, { id: random.pick(posts) }), weight: 3 },
  { make: ({ random, posts }) => graphql(pageQuery, { first: 2, after: random.pick(posts) }) },
  { make: () => graphql(introspection) },
  { make: () => graphql(createQuery, { input: text }) },
  {
    make: ({ random, posts }) =>
      graphql(commentQuery, { input: { postId: random.pick(posts), content: 'By GraphQL' } }),
  },
  {
    make: ({ random, posts }) =>
      send('POST', '/graphql', [
        { query: findQuery, operationName: 'Find', variables: { id: random.pick(posts) } },
        { query: '{ __typename }', extensions: {} },
        { query: '{ nothing }' },
      ]),
    weight: 3,
  },
  {
    make: () =>
      form('/graphql', [
        field('operations', { query: uploadQuery, variables: { file: null } }),
        field('map', { 0: ['variables.file'] }),
        file('0', 'by-graphql.txt', 'content'),
      ]),
    weight: 3,
  },
  {
    make: () =>
      form('/graphql', [
        field('operations', [
          { query: uploadQuery, variables: { file: null } },
          { query: '{ a }' },
        ]),
        field('map', { a: ['0.variables.file'] }),
        file('a', 'batch.svg', '<svg/>'),
      ]),
    weight: 2,
  },
  {
    make: () => ({
      ...graphql(subscription),
      headers: [
        ['Content-Type', 'application/json'],
        ['Accept', 'text/event-stream'],
      ],
    }),
  },
];

export function modernSocket({ random, posts }: Known): FuzzRequest {
  const input = { postId: random.pick(posts), content: 'By socket' };
  return socket('graphql-transport-ws', [
    { type: 'connection_init', payload: { a: 1 } },
    { type: 'ping', payload: { a: 1 } },
    { id: '1', type: 'subscribe', payload: { query: subscription } },
    { id: '2', type: 'subscribe', payload: { query: commentQuery, variables: { input } } },
    { id: '3', type: 'subscribe', payload: { query: findQuery, variables: { id: 'x' } } },
    { id: '1', type: 'complete' },
  ]);
}

export function legacySocket({ random, posts }: Known): FuzzRequest {
  const input = { postId: random.pick(posts), content: 'By older socket' };
  return socket('graphql-ws', [
    { type: 'connection_init', payload: random.oneIn(5) ? { rejectMessage: 'no' } : {} },
    { id: '1', type: 'start', payload: { query: subscription } },
    { id: '2', type: 'start', payload: { query: commentQuery, variables: { input } } },
    { id: '3', type: 'subscribe', payload: { query: '{ __typename }' } },
    { id: '1', type: 'stop' },
    { type: 'connection_terminate' },
  ]);
}

const encode = encodeURIComponent;
export const findTarget = `/graphql?query=${encode(findQuery)}&variables=${encode('{"id":"x"}')}`;
