/**
 * A load: connections that each send one request after the other for some seconds. Runs as a
 * process of its own, so that its CPU time is not the server's. Of `every` requests one is `write`,
 * where the file has both. Prints one JSON line.
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
const { write: other = request, every = 1 } = request;
const write = toMessage(other, Buffer.from(other.body, 'base64'));

/** Of `every` requests the last one is the write. */
function toBytes() {
  number += 1;
  if (numbered) {
    return toMessage(request, Buffer.from(body.toString().replaceAll('@', `${number}`)));
  }
  return every > 1 && number % every === 0 ? write : constant;
}

function run() {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1');
    let got = Buffer.alloc(0);
    let sent = 0;
    const next = () => {
      if (Date.now() >= until) {
        socket.end();
        resolve();
        return;
      }
      sent = performance.now();
      socket.write(toBytes());
    };
    socket.on('connect', next);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      got = got.length === 0 ? chunk : Buffer.concat([got, chunk]);
      const head = got.indexOf('\r\n\r\n');
      if (head === -1) return;
      const text = got.latin1Slice(0, head);
      const length = Number(/\r\ncontent-length: ([0-9]+)/i.exec(text)?.[1] ?? 0);
      if (got.length < head + 4 + length) return;
      if (!text.startsWith('HTTP/1.1 2')) failed += 1;
      latencies.push(performance.now() - sent);
      got = got.subarray(head + 4 + length);
      next();
    });
  });
}

await Promise.all(Array.from({ length: Number(connections) }, run));
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.floor(latencies.length * share)] ?? 0;
console.log(JSON.stringify({ count: latencies.length, failed, p50: at(0.5), p99: at(0.99) }));
