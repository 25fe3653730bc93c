/**
 * `node bench/delays.mjs`: how long others wait while the service does something long: lists of all
 * posts, each made anew, since every second request is a write; and an upload.
 *
 * Options: --posts 10000, --comments 5 (of a post), --connections 4, --mib 1024 (the upload),
 * --seconds 5, --only <part of a name>.
 */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addComment, authorize, createPost, mutate } from './fill.mjs';
import { load, probe, start, stop } from './processes.mjs';
import { begin } from './report.mjs';
import { listQuery, mix, text, toLoad } from './scenarios.mjs';

const { options, report } = begin({
  posts: 10_000,
  comments: 5,
  connections: 4,
  mib: 1024,
  seconds: 5,
  only: '',
});
const json = { 'Content-Type': 'application/json' };

await main();

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'inkwell-delays-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const settings = { DEMO_DATA: 'true', UPLOAD_DIR: folder, GRAPHQL_OBJECTS_MAX: '200000' };
  const service = await start(join(import.meta.dirname, '../dist/server.js'), [], settings);
  const id = await fill(service.url);
  const comment = { method: 'POST', headers: json, body: JSON.stringify({ content: text }) };
  const change = { ...comment, body: JSON.stringify({ title: 'A changed post', content: text }) };
  const writes = {
    list: { ...change, method: 'PUT', path: `/posts/${id}` },
    graphql: { ...comment, path: `/posts/${id}/comments` },
  };
  const all = { method: 'POST', path: '/graphql', headers: json };
  const beside = {
    nothing: () => pause(),
    'GET /posts': () => read({ method: 'GET', path: '/posts' }, writes.list),
    'GraphQL allPosts': () =>
      read({ ...all, body: JSON.stringify({ query: listQuery }) }, writes.graphql),
    upload: () => upload(service.port),
  };
  const read = (request, write) => {
    const file = join(folder, 'request.json');
    writeFileSync(file, toLoad(mix(request, write, 2)));
    return load(service, file, options);
  };
  const head = ['beside', 'requests', 'p50 ms', 'p99 ms', 'max ms'];
  const row = report.table('How long others wait', head, 1);
  for (const [name, run] of Object.entries(beside)) {
    if (!name.includes(options.only)) continue;
    const { count, p50, p99, max } = await probe(service, run);
    row(name, count, p50, p99, max);
  }
  await stop(service);
  report.end();
}

function pause() {
  return new Promise((resolve) => setTimeout(resolve, options.seconds * 1000));
}

/** Posts with an author and comments. Returns the id of the first. */
async function fill(url) {
  const headers = await authorize(url);
  let first = '';
  for (let left = options.posts; left > 0; left -= 1000) {
    const ids = await mutate(url, Array(Math.min(left, 1000)).fill(createPost), headers);
    first ||= ids[0];
    for (let comment = 0; comment < options.comments; comment += 1) {
      await mutate(url, ids.map(addComment), headers);
    }
  }
  return first;
}

async function upload(port) {
  const mebibyte = Buffer.alloc(1024 * 1024, text);
  const count = options.mib;
  const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n';
  const end = '\r\n--b--\r\n';
  const length = head.length + count * mebibyte.length + end.length;
  const socket = connect(port, '127.0.0.1');
  socket.write(
    'POST /api/multiparts/list HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n' +
      `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${length}\r\n\r\n${head}`,
  );
  const answered = socket.setEncoding('latin1').toArray();
  for (let sent = 0; sent < count; sent += 1) {
    if (!socket.write(mebibyte)) await once(socket, 'drain');
  }
  socket.write(end);
  const response = (await answered).join('');
  if (!response.startsWith('HTTP/1.1 200')) throw new Error(response);
}
