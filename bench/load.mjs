/**
 * A load: connections that each send one request after the other for some seconds. Runs as a
 * process of its own, so that its CPU time is not the server's. The requests of the file are sent in
 * turns; `pipelined` of them are sent at once; without `keepAlive` each has a connection of its own.
 * `@` in a head or a body is replaced by a running number, so that no two are equal. Prints one JSON
 * line.
 *
 * Arguments: port, seconds, connections, and a file that `toLoad` of scenarios.mjs has made.
 */

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const [port, seconds, connections, file = ''] = process.argv.slice(2);
const { requests, pipelined = 1, keepAlive = true } = JSON.parse(readFileSync(file, 'utf8'));
const until = Date.now() + Number(seconds) * 1000;
/** @type {number[]} */
const latencies = [];
// Another start for each load: what one has sent is new in the next one too.
let number = Math.floor(Math.random() * 1e12);
/** The first line of the first response that is none of success. */
let failure = '';
let failed = 0;

const makers = requests.map(toMaker);

function toMaker({ head, body, hasBody }) {
  const content = Buffer.from(body, 'base64');
  const constant = toMessage(head, content);
  if (!content.includes('@') && !head.includes('@')) return () => constant;
  const numbered = (/** @type {string} */ text) => text.replaceAll('@', `${number}`);
  return () => toMessage(numbered(head), Buffer.from(numbered(content.toString())));

  function toMessage(lines, bytes) {
    const length = hasBody ? `Content-Length: ${bytes.length}\r\n` : '';
    return Buffer.concat([Buffer.from(`${lines}${length}\r\n`), bytes]);
  }
}

function nextMessage() {
  number += 1;
  return makers[number % makers.length]();
}

/** One connection after the other where each carries one request, else one alone. */
async function run() {
  while (Date.now() < until) await converse();
}

function converse() {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1');
    const reader = createReader();
    let sent = keepAlive ? 0 : performance.now();
    let due = 0;
    const next = () => {
      if (Date.now() >= until) {
        socket.end();
        resolve(undefined);
        return;
      }
      if (keepAlive) sent = performance.now();
      due = pipelined;
      socket.write(
        due === 1 ? nextMessage() : Buffer.concat(Array.from({ length: due }, nextMessage)),
      );
    };
    socket.on('connect', next);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      for (let ended = reader(chunk); ended > 0; ended -= 1) {
        due -= 1;
        latencies.push(performance.now() - sent);
      }
      if (due > 0) return;
      if (keepAlive) next();
      else {
        socket.destroy();
        resolve(undefined);
      }
    });
  });
}

/** Returns a function that takes the bytes of a connection and says how many responses they end. */
function createReader() {
  /** A head that is not whole yet, or the last bytes of a body in chunks. */
  let rest = Buffer.alloc(0);
  /** Bytes of the body that are still to come; undefined between two responses. */
  let left;
  return (/** @type {Buffer} */ chunk) => {
    let ended = 0;
    let bytes = Buffer.concat([rest, chunk]);
    rest = Buffer.alloc(0);
    while (bytes.length > 0 || left === 0) {
      const head = left === undefined ? bytes.indexOf('\r\n\r\n') : 0;
      if (head === -1) {
        rest = bytes;
        break;
      }
      if (left === undefined) {
        left = readHead(bytes.toString('latin1', 0, head));
        bytes = bytes.subarray(head + 4);
      }
      // In chunks, the last of which is empty; nothing else is under way on this connection.
      if (left === Infinity && bytes.subarray(-5).toString() === '0\r\n\r\n') left = bytes.length;
      if (left > bytes.length) {
        if (left === Infinity) rest = Buffer.from(bytes.subarray(-5));
        left -= bytes.length;
        break;
      }
      bytes = bytes.subarray(left);
      left = undefined;
      ended += 1;
    }
    return ended;
  };
}

/** The length of the body. */
function readHead(head) {
  if (!head.startsWith('HTTP/1.1 2')) {
    failed += 1;
    failure ||= head.slice(0, head.indexOf('\r'));
  }
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return Infinity;
  return Number(/\r\ncontent-length: ([0-9]+)/i.exec(head)?.[1] ?? 0);
}

await Promise.all(Array.from({ length: Number(connections) }, run));
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.floor(latencies.length * share)] ?? 0;
console.log(
  JSON.stringify({ count: latencies.length, failed, failure, p50: at(0.5), p99: at(0.99) }),
);
