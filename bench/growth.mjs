/**
 * `npm run bench:growth`: the same operations at 100, 10,000 and 1,000,000 posts. CPU time of the
 * server per operation, and memory. `--posts 100,10000` for other sizes.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { idleMemory, load, start, stop } from './processes.mjs';

const { values: options } = parseArgs({
  options: { posts: { type: 'string', default: '100,10000,1000000' } },
});
const folder = mkdtempSync(join(tmpdir(), 'inkwell-growth-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const text = 'An answer of the length that a person would write under a post, and no longer.';
const byId = '{ postById(postId: "ID") { id title comments { content } } }';
const json = ['Content-Type: application/json'];

console.log(`Node ${process.version}, ${process.platform}, ${cpus()[0]?.model ?? 'unknown CPU'}`);
console.log(
  '| posts | MiB | GET /posts/{id} µs | postById µs | addComment µs | allPosts | GET /posts |',
);
console.log('|---:|---:|---:|---:|---:|---:|---:|');
for (const posts of options.posts.split(',').map(Number)) console.log(await measure(posts));

async function measure(posts) {
  // Every answer is made anew: what grows is to be seen, not what is kept.
  const settings = {
    DEMO_DATA: 'false',
    ANSWER_CACHE_BYTES_MAX: '0',
    MEMORY_STORE_BYTES_MAX: String(8 * 1024 ** 3),
    UPLOAD_DIR: folder,
    NODE_OPTIONS: '--max-old-space-size=8192',
  };
  const program = join(import.meta.dirname, '../dist/server.js');
  const service = await start(program, [], settings);
  const ids = await fill(service.url, posts);
  const mib = await idleMemory(service);
  const id = ids[Math.floor(ids.length / 2)];
  const addComment = 'mutation($i: CommentInput!) { addComment(commentInput: $i) }';
  const variables = { i: { postId: id, content: text } };
  const cells = [
    posts,
    mib.toFixed(0),
    await costOf(service, { head: get(`/posts/${id}`) }),
    await costOf(service, { query: byId.replace('ID', id) }),
    await costOf(service, { query: addComment, variables }),
    await timeOf(service.url, '/graphql', '{ allPosts { id title } }'),
    await timeOf(service.url, '/posts'),
  ];
  await stop(service);
  return `| ${cells.join(' | ')} |`;
}

/** A thousand posts a request: a batch of twenty mutations with fifty fields each. */
async function fill(url, posts) {
  const input = JSON.stringify(`${text} ${text}`);
  const field = (index) =>
    `p${index}: createPost(createPostInput: { title: "A", content: ${input} })`;
  const ids = [];
  while (ids.length < posts) {
    const count = Math.min(posts - ids.length, 1_000);
    const batch = [];
    for (let done = 0; done < count; done += 50) {
      const fields = Array.from({ length: Math.min(50, count - done) }, (_, index) => field(index));
      batch.push({ query: `mutation { ${fields.join(' ')} }` });
    }
    const results = await (await post(url, batch)).json();
    for (const { data } of results) ids.push(...Object.values(data));
  }
  return ids;
}

function post(url, body) {
  const headers = { 'Content-Type': 'application/json' };
  return fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) });
}

function get(path) {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n`;
}

async function costOf(service, { head, query, variables }) {
  const file = join(folder, 'request.json');
  const lines = ['POST /graphql HTTP/1.1', 'Host: 127.0.0.1', ...json, ''];
  const body =
    query === undefined ? '' : Buffer.from(JSON.stringify({ query, variables })).toString('base64');
  const request = { head: head ?? lines.join('\r\n'), body, hasBody: query !== undefined };
  writeFileSync(file, JSON.stringify(request));
  const loading = { seconds: 1, connections: 16 };
  await load(service, file, loading); // warm
  return (await load(service, file, loading)).cpuMicros.toFixed(1);
}

/** One whole answer: status, size, and milliseconds until its last byte. */
async function timeOf(url, path, query) {
  const begun = performance.now();
  const answer = query === undefined ? await fetch(url + path) : await post(url, { query });
  let bytes = 0;
  let refused = false;
  for await (const chunk of answer.body) {
    if (bytes === 0) refused = Buffer.from(chunk).toString('latin1').startsWith('{"errors"');
    bytes += chunk.length;
  }
  const took = `${(performance.now() - begun).toFixed(0)} ms`;
  return refused ? `refused, ${took}` : `${(bytes / 1024 ** 2).toFixed(1)} MiB, ${took}`;
}
