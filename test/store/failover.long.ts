/** Two nodes under load, whose primary is killed while its standby lags. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fanOut } from '../support/fan-out.js';
import { rounds } from '../support/long.js';
import { startNode } from '../support/program.js';
import { skipPostgres as skip } from '../support/postgres.js';
import { catchUp, detach, startPair } from '../support/postgres-pair.js';

const comments = rounds('FAILOVER_COMMENTS', { short: 1_000, long: 1_000 });
const load = { subscribers: 6, comments, writers: 8 };

describe('nodes under load, after a failover', { skip }, () => {
  for (const [lagMilliseconds, end] of [
    [0, 'killed'],
    [300, 'killed'],
    [2_000, 'killed'],
    [300, 'silent'],
  ] as const) {
    it(`with a lag of ${lagMilliseconds} ms and a ${end} primary, hear of what is there once`, async (context) => {
      const { primary, standby, url, promote } = await startPair(context);
      const env = { STORE_URL: url, STORE_TIMEOUT_SECONDS: '2' };
      const nodes = await Promise.all([1, 2].map(() => startNode(context, env)));
      const disturb = async (): Promise<void> => {
        await catchUp(primary, standby);
        await detach(standby);
        await pause(lagMilliseconds);
        if (end === 'killed') await primary.stop('SIGQUIT');
        else await primary.signal('SIGSTOP');
        await promote();
      };
      const { stored, acknowledged, asked, heard } = await fanOut({ nodes, ...load, disturb });
      const there = new Set(stored);
      const lost = acknowledged.filter((id) => !there.has(id)).length;
      const doubled = heard.map((ids) => ids.length - new Set(ids).size);
      const missed = heard.map((ids) => {
        const told = new Set(ids);
        return stored.filter((id) => !told.has(id)).length;
      });
      context.diagnostic(
        `written ${asked.length}, acknowledged ${acknowledged.length}, of those lost with the ` +
          `old primary ${lost}, on the new primary ${stored.length}`,
      );
      for (const [at, ids] of heard.entries()) {
        context.diagnostic(
          `subscriber ${at} on node ${at % 2}: heard ${ids.length}, ` +
            `doubled ${doubled[at]}, missed ${missed[at]}`,
        );
      }
      // In the stored order, between those that only the old primary had.
      for (const ids of heard) {
        assert.deepEqual(
          ids.filter((id) => there.has(id)),
          stored,
        );
      }
      assert.deepEqual(new Set(doubled), new Set([0]));
      const refused = asked.filter(({ status }) => status !== 201);
      assert.deepEqual(
        refused.filter(({ status }) => status !== 503),
        [],
      );
    });
  }
});
