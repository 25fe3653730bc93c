/**
 * A load: connections that each send one request after the other for some seconds. Runs as a
 * process of its own, so that its CPU time is not the server's. Of `every` requests one is `write`,
 * where the file has both; `pipelined` of them are sent at once; without `keepAlive` each has a
 * connection of its own. Prints one JSON line.
 *
 * Arguments: port, seconds, connections, and a file with the request's head and body.
 */

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const [port, seconds, connections, file] = process.argv.slice(2);
const request = JSON.parse(readFileSync(file, 'utf8'));
const body = Buffer.from(request.body, 'base64');
const numbered = body.includes('@');
const until = Date.now() + Number(seconds) * 1000;
const latencies = [];
// Another start for each load: what one has sent is new in the next one too.
let number = Math.floor(Math.random() * 1e12);
let failed = 0;

function toMessage({ head, hasBody }, content) {
  const length = hasBody ? `Content-Length: ${content.length}\r\n` : '';
  return Buffer.concat([Buffer.from(`${head}${length}\r\n`), content]);
}
const constant = toMessage(request, body);
const { write: other = request, every = 1, pipelined = 1, keepAlive = true } = request;
const write = toMessage(other, Buffer.from(other.body, 'base64'));

/** Of `every` requests the last one is the write. */
function toBytes() {
  number += 1;
  if (numbered) {
    return toMessage(request, Buffer.from(body.toString().replaceAll('@', `${number}`)));
  }
  return every > 1 && number % every === 0 ? write : constant;
}

/** One connection after the other where each carries one request, else one alone. */
async function run() {
  while (Date.now() < until) await converse();
}

function converse() {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1');
    let got = Buffer.alloc(0);
    let sent = keepAlive ? 0 : performance.now();
    let due = 0;
    const next = () => {
      if (Date.now() >= until) {
        socket.end();
        resolve();
        return;
      }
      if (keepAlive) sent = performance.now();
      due = pipelined;
      socket.write(due === 1 ? toBytes() : Buffer.concat(Array.from({ length: due }, toBytes)));
    };
    socket.on('connect', next);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      got = got.length === 0 ? chunk : Buffer.concat([got, chunk]);
      for (let rest = readResponse(got); rest !== undefined; rest = readResponse(got)) {
        got = rest;
        due -= 1;
        latencies.push(performance.now() - sent);
      }
      if (due > 0) return;
      if (keepAlive) next();
      else {
        socket.destroy();
        resolve();
      }
    });
  });
}

/** What stands behind a whole response; undefined as long as it is not whole. */
function readResponse(got) {
  const head = got.indexOf('\r\n\r\n');
  if (head === -1) return undefined;
  const text = got.latin1Slice(0, head);
  const length = Number(/\r\ncontent-length: ([0-9]+)/i.exec(text)?.[1] ?? 0);
  if (got.length < head + 4 + length) return undefined;
  if (!text.startsWith('HTTP/1.1 2')) failed += 1;
  return got.subarray(head + 4 + length);
}

await Promise.all(Array.from({ length: Number(connections) }, run));
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.floor(latencies.length * share)] ?? 0;
console.log(JSON.stringify({ count: latencies.length, failed, p50: at(0.5), p99: at(0.99) }));
