/**
 * A change finds its record, then writes it: two statements of PostgreSQL, which have one time
 * limit. Here the first takes all of it.
 */

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { skipPostgres as skip } from '../support/postgres.ts';
import { endTogether, startFront } from '../support/postgres-proxy.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { until } from '../support/until.ts';

/** A service on PostgreSQL, whose answers are held back from `hold` on. */
async function startHeld(t: TestContext) {
  const url = new URL(await database.emptyDatabase());
  const { hostname, port } = url;
  const held: (readonly [Socket, Buffer])[] = [];
  let isHeld = false;
  url.host = await startFront(t, (near) => {
    const far = connect(Number(port), hostname);
    endTogether(near, far);
    near.pipe(far);
    far.on('data', (bytes: Buffer) => {
      if (isHeld) held.push([near, bytes]);
      else near.write(bytes);
    });
  });
  // The cache would ask a question of its own first.
  const cache = { RESPONSE_CACHE_BYTES_MAX: '0' };
  const env = { STORE_URL: url.href, STORE_TIMEOUT_SECONDS: '600', ...cache };
  const service = await startServer(t, { env });
  return {
    ...service,
    hold: () => void (isHeld = true),
    release: () => void (isHeld = false),
    /** Waits for held answers, and takes them out. */
    async takeHeld() {
      await until('an answer of PostgreSQL', () => held.length > 0);
      return held.splice(0);
    },
  };
}

type Service = Awaited<ReturnType<typeof startHeld>>;

const post = { title: 'a', content: 'b' };

const changes: Readonly<Record<string, (service: Service, path: string) => Promise<Response>>> = {
  PUT: ({ send }, path) => send('PUT', path, { title: 'c', content: 'd' }),
  deletePost: ({ send }, path) => {
    const query = `mutation { deletePost(id: "${path.slice('/posts/'.length)}") }`;
    return send('POST', '/graphql', { query });
  },
};

describe('one time limit spans the statements of', { skip }, () => {
  for (const [name, change] of Object.entries(changes)) {
    test(name, async (t) => {
      const service = await startHeld(t);
      const path = (await service.send('POST', '/posts', post)).headers.get('location') ?? '';
      service.hold();
      const changing = change(service, path);
      const found = await service.takeHeld();
      // By this clock the record is found in time, or just not, and nothing is left for the write.
      const late = performance.now() + 700_000;
      const clock = t.mock.method(performance, 'now', () => late);
      service.release();
      for (const [socket, bytes] of found) socket.write(bytes);
      const response = await changing;
      assert.match(`${response.status} ${await response.text()}`, /^503 |UNAVAILABLE/);
      clock.mock.restore();
      const kept = (await (await service.fetch(path)).json()) as object;
      assert.deepEqual({ ...kept, ...post }, kept);
    });
  }
});
