/**
 * Asks a server for /hello every 2 ms, until its input ends. Prints as JSON how many responses there
 * were, and the median, the 99th percentile and the longest of their delays in milliseconds. Where
 * a response is late, those count too that it could not ask for meanwhile. A process of its own, so
 * that nothing else delays it. `own`: the same without the time for which the machine let the server
 * wait for a processor (Linux). Arguments: port, process.
 */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const everyMilliseconds = 2;
const socket = connect(Number(process.argv[2]), '127.0.0.1').setNoDelay(true);
await once(socket, 'connect');
const [delays, own] = [[], []];
process.stdin.resume();
while (!process.stdin.readableEnded) {
  const [sent, queued] = [performance.now(), queuedTime()];
  socket.write('GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await once(socket, 'data');
  const took = performance.now() - sent;
  // Those that others would have sent meanwhile have waited too.
  note(delays, took);
  note(own, Math.max(0.1, took - (queuedTime() - queued)));
  await new Promise((resolve) => setTimeout(resolve, everyMilliseconds));
}
socket.destroy();
console.log(JSON.stringify({ ...toFigures(delays), own: toFigures(own) }));

function note(waits, took) {
  for (let left = took; left > 0; left -= everyMilliseconds) waits.push(left);
}

function toFigures(waits) {
  waits.sort((a, b) => a - b);
  const at = (share) => waits[Math.floor((waits.length - 1) * share)];
  return { count: waits.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** For how many milliseconds, ever, the server's main thread was ready and not let run. */
function queuedTime() {
  if (process.platform !== 'linux') return 0;
  const [, nanoseconds] = readFileSync(`/proc/${process.argv[3]}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}
