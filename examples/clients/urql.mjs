// urql: prints the comments of the newest post, and adds each line that is typed, whatever gets lost.
// npm install @urql/core graphql graphql-ws
import { setTimeout as pause } from 'node:timers/promises';
import { Client, fetchExchange } from '@urql/core';
import { fetchAsUser, server } from './login.mjs';
import { adding, follow, loading, onLine } from './resume.mjs';

/**
 * `fetch` for urql, which calls it once for an operation: all attempts have one key. No answer, 5xx, and a key whose
 * first attempt is under way are repeated. Any other answer is final.
 */
async function fetchUntilAnswered(url, options) {
  const headers = { ...options.headers, 'idempotency-key': crypto.randomUUID() };
  for (let milliseconds = 100; ; milliseconds = Math.min(2 * milliseconds, 10_000)) {
    try {
      const response = await fetchAsUser(url, { ...options, headers });
      const text = await response.text();
      if (response.status < 500 && !text.includes('"UNAVAILABLE"')) {
        return new Response(text, response);
      }
    } catch (error) {
      // `fetch` fails with a TypeError; a login that is refused does not.
      if (!(error instanceof TypeError)) throw error;
    }
    await pause(milliseconds * Math.random());
  }
}

const client = new Client({
  url: `${server}/graphql`,
  fetch: fetchUntilAnswered,
  exchanges: [fetchExchange],
});

let postId;
async function load() {
  const { data } = await client.query(loading, {}, { requestPolicy: 'network-only' });
  const [post] = data.allPosts;
  postId = post.id;
  for (const comment of post.comments) show({ ...comment, postId });
  return post.comments.at(-1);
}

function show(comment) {
  if (comment.postId === postId) console.log(comment.content);
}

const last = await load();
onLine((content) => client.mutation(adding, { input: { postId, content } }).toPromise());
await follow({ last, load, show });
