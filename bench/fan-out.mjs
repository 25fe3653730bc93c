/**
 * `node bench/fan-out.mjs`: three nodes on one PostgreSQL, subscribers on all of them, and comments
 * made on all of them; then the same with a restart of PostgreSQL in the middle. Build the program
 * and its tests first (`npm test` does).
 *
 * Options: --subscribers 300, --comments 3000, --writers 12.
 */

import { fanOut } from '#support/fan-out.js';
import { startPostgres } from '#support/postgres.js';
import { startNode } from '#support/program.js';
import { begin } from './report.mjs';

const { options: size, report } = begin({ subscribers: 300, comments: 3000, writers: 12 });
const head = ['run', 'delivered', 'of', 'in the stored order', 'lost', 's', 'p50 ms', 'p99 ms'];
const row = report.table('Comments on three nodes', head, 0);
const server = await startPostgres(['fsync=on']);
/** @type {(() => Promise<void>)[]} */
const ends = [];
try {
  await measure('undisturbed');
  await measure('PostgreSQL restarted', async () => {
    await server.stop('SIGINT');
    await server.start();
  });
} finally {
  for (const end of ends) await end();
  await server.remove();
}
report.end();

/**
 * @param {string} name
 * @param {() => Promise<void>} [disturb]
 */
async function measure(name, disturb) {
  const env = { STORE_URL: await server.createDatabase() };
  const context = { after: (end) => ends.push(end) };
  const nodes = await Promise.all([1, 2, 3].map(() => startNode(context, env)));
  const { stored, acknowledged, heard, delays, arrivals, asked } = await fanOut({
    ...size,
    nodes,
    ...(disturb && { disturb }),
  });
  const delivered = heard.reduce((sum, ids) => sum + ids.length, 0);
  const inOrder = heard.every((ids) => ids.every((id, at) => id === stored[at]));
  const lost = acknowledged.filter((id) => !stored.includes(id)).length;
  const at = (share) => delays[Math.floor(delays.length * share)] ?? Number.NaN;
  // A million arrivals are too many arguments for one call.
  const end = arrivals.flat().reduce((latest, time) => Math.max(latest, time), 0);
  const seconds = (end - Math.min(...asked.map(({ began }) => began))) / 1000;
  const all = stored.length * heard.length;
  row(name, delivered, all, String(inOrder), lost, seconds, at(0.5), at(0.99));
  for (const node of nodes) await node.signal('SIGTERM');
}
