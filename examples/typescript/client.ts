// Writes a post over REST and a comment over GraphQL, and prints all posts. Every type comes from the server:
// see generate.mjs.

import { readFile } from 'node:fs/promises';
import type { components } from './generated/api.js';
import type {
  AddCommentMutation,
  AddCommentMutationVariables,
  PostsQuery,
} from './generated/graphql.js';

const [server = 'http://localhost:8080', documents = 'operations.graphql'] = process.argv.slice(2);

type NewPost = components['schemas']['PostInput'];

/** The path of the new post. */
async function writePost(post: NewPost): Promise<string> {
  const response = await fetch(`${server}/posts`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(post),
  });
  const location = response.headers.get('Location');
  if (location === null) throw new Error(await response.text());
  return location;
}

async function request<Data>(operationName: string, variables?: object): Promise<Data> {
  const response = await fetch(`${server}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: await readFile(documents, 'utf8'), operationName, variables }),
  });
  const result = (await response.json()) as { data: Data; errors?: { message: string }[] };
  if (result.errors !== undefined) throw new Error(result.errors[0]?.message);
  return result.data;
}

const location = await writePost({ title: 'Typed', content: 'By what the server says of itself.' });
const postId = location.slice('/posts/'.length);
const comment: AddCommentMutationVariables = { input: { postId, content: 'No cast needed.' } };
await request<AddCommentMutation>('AddComment', comment);
const { allPosts } = await request<PostsQuery>('Posts');
for (const { title, comments } of allPosts) {
  console.log(
    title,
    (comments ?? []).map((one) => one?.content),
  );
}
