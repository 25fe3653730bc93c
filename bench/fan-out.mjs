/**
 * `node bench/fan-out.mjs`: three nodes on one PostgreSQL, subscribers on all of them, and comments
 * made on all of them; then the same with a restart of PostgreSQL in the middle. Build the program
 * and its tests first (`npm test` does).
 *
 * Options: --subscribers 300, --comments 3000, --writers 12.
 */

import { parseArgs } from 'node:util';
import { fanOut } from '../dist-test/support/fan-out.js';
import { startNode } from '../dist-test/support/program.js';
import { startPostgres } from '../dist-test/support/postgres.js';

const { values } = parseArgs({
  options: {
    subscribers: { type: 'string', default: '300' },
    comments: { type: 'string', default: '3000' },
    writers: { type: 'string', default: '12' },
  },
});
const size = Object.fromEntries(
  Object.entries(values).map(([name, value]) => [name, Number(value)]),
);
const server = await startPostgres(['fsync=on']);
const ends = [];
try {
  await measure('undisturbed', undefined);
  await measure('PostgreSQL restarted', async () => {
    await server.stop('SIGINT');
    await server.start();
  });
} finally {
  for (const end of ends) await end();
  await server.remove();
}

async function measure(name, disturb) {
  const env = { STORE_URL: await server.createDatabase() };
  const context = { after: (end) => ends.push(end) };
  const nodes = await Promise.all([1, 2, 3].map(() => startNode(context, env)));
  const { stored, acknowledged, heard, delays, seconds } = await fanOut({
    ...size,
    nodes,
    disturb,
  });
  const delivered = heard.reduce((sum, ids) => sum + ids.length, 0);
  const inOrder = heard.every((ids) => ids.every((id, at) => id === stored[at]));
  const lost = acknowledged.filter((id) => !stored.includes(id)).length;
  const at = (share) => delays[Math.floor(delays.length * share)]?.toFixed(0);
  console.log(
    `${name}: ${delivered} of ${stored.length * heard.length} delivered in ${seconds.toFixed(1)} s`,
  );
  console.log(`  all in the stored order: ${inOrder}; acknowledged and lost: ${lost}`);
  console.log(`  from request to subscriber: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
  for (const node of nodes) await node.signal('SIGTERM');
}
