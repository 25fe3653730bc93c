/**
 * Asks a server for /hello every 2 ms, until its input ends. Prints as JSON how many responses there
 * were, and the median, the 99th percentile and the longest of their delays in milliseconds. Where
 * a response is late, those count too that it could not ask for meanwhile. A process of its own, so
 * that nothing else delays it. Argument: port.
 */

import { once } from 'node:events';
import { connect } from 'node:net';

const everyMilliseconds = 2;
const socket = connect(Number(process.argv[2]), '127.0.0.1').setNoDelay(true);
await once(socket, 'connect');
const delays = [];
process.stdin.resume();
while (!process.stdin.readableEnded) {
  const sent = performance.now();
  socket.write('GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await once(socket, 'data');
  // Those that others would have sent meanwhile have waited too.
  const took = performance.now() - sent;
  for (let left = took; left > 0; left -= everyMilliseconds) delays.push(left);
  await new Promise((resolve) => setTimeout(resolve, everyMilliseconds));
}
socket.destroy();
delays.sort((a, b) => a - b);
const at = (share) => delays[Math.floor((delays.length - 1) * share)];
console.log(JSON.stringify({ count: delays.length, p50: at(0.5), p99: at(0.99), max: at(1) }));
