/** R40: a used key refuses another request, whichever door it comes through. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { codeOf, json, send, type Sent, under } from '../support/keyed.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { skipPostgres } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { type Ending, startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { until } from '../support/until.ts';

const post = (path: string, value: object): Sent => {
  return { method: 'POST', path, type: json, body: JSON.stringify(value) };
};
const graphql = (query: string): Sent => post('/graphql', { query });

const writes: Readonly<Record<string, Sent>> = {
  'POST /posts': post('/posts', { title: 'a', content: 'b' }),
  'POST /api/todos': post('/api/todos', { title: 'a' }),
  createPost: graphql('mutation { createPost(createPostInput: {title: "a", content: "b"}) }'),
  upload: uploadOf('text'),
};

/** An upload of `a.txt`. */
function uploadOf(content: string): Sent {
  const body = multipartBody([part('part', content, { fileName: 'a.txt', type: 'text/plain' })]);
  return { method: 'POST', path: '/api/multiparts/simple', type: multipartType, body };
}

/** Files that last as long as the records, so that both are in one store. */
async function start(context: Ending, env: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-door-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return startServer(context, { env: { ...env, UPLOAD_DIR: folder } });
}

/** What was answered: the code of REST, or the message of GraphQL. */
async function refusalOf(response: Response): Promise<unknown> {
  if (!response.url.endsWith('/graphql'))
    return `${response.status} ${String(await codeOf(response))}`;
  const { errors } = (await response.json()) as {
    readonly errors?: readonly { readonly message: string }[];
  };
  return errors?.[0]?.message;
}

const refusals = [
  '422 idempotency_key_reused',
  'The Idempotency-Key was used for another request.',
];
const waiting = [
  '409 request_in_progress',
  'The first request with this Idempotency-Key is under way.',
];
const isGraphql = ({ path }: Sent): number => (path === '/graphql' ? 1 : 0);

test('a key that was used at one door is refused at another', async (t) => {
  const { url } = await start(t, {});
  const all = Object.entries(writes);
  for (const [at, [first, sent]] of all.entries()) {
    const [second, other] = all.at(at - 1) ?? assert.fail();
    const key = under(randomUUID());
    assert.equal((await send(url, sent, key)).ok, true);
    const refused = await send(url, other, key);
    assert.equal(await refusalOf(refused), refusals[isGraphql(other)], `${first}, then ${second}`);
    const again = await send(url, sent, key);
    assert.equal(again.headers.get('idempotency-replayed'), 'true', first);
  }
});

describe('a key whose first request is under way on another node', { skip: skipPostgres }, () => {
  for (const [name, sent] of Object.entries(writes).slice(1, 3)) {
    it(`refuses ${name} after the time of a statement`, async (t) => {
      const url = await database.clearedDatabase();
      const server = await start(t, { STORE_URL: url, STORE_TIMEOUT_SECONDS: '1' });
      const key = under(randomUUID());
      const done = await send(server.url, sent, key);
      assert.equal(done.ok, true);
      // As if the first were not committed yet: its key alone.
      const session = openSession(t, url);
      type Kept = Readonly<Record<'key' | 'print' | 'result', string>>;
      const [kept] = await session<Kept>`DELETE FROM inkwell.requests RETURNING key, print, result`;
      assert.ok(kept !== undefined);
      await session`BEGIN`;
      await session`INSERT INTO inkwell.requests (key, print, result)
        VALUES (${kept.key}, ${kept.print}, ${kept.result})`;
      const refused = await send(server.url, sent, key);
      assert.equal(await refusalOf(refused), waiting[isGraphql(sent)]);
      await session`COMMIT`;
      const again = await send(server.url, sent, key);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
    });
  }
});

test(
  'a file that is replaced while it is removed is removed as it is then, and once',
  { skip: skipPostgres },
  async (t) => {
    const storeUrl = await database.clearedDatabase();
    const { url } = await start(t, { STORE_URL: storeUrl });
    const key = under(randomUUID());
    const remove = () => send(url, { method: 'DELETE', path: '/api/multiparts/a.txt' }, key);
    assert.equal((await send(url, uploadOf('text'))).status, 200);
    const session = openSession(t, storeUrl);
    await session`BEGIN`;
    await session`UPDATE inkwell.files SET disk_name = 'newer.upload'`;
    const removed = remove();
    await until('a removal that waits for the row', async () => {
      const ofLock = `SELECT FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock'`;
      return (await database.query(storeUrl, ofLock)).length > 0;
    });
    await session`COMMIT`;
    assert.equal((await removed).status, 204);
    assert.deepEqual(await (await fetch(`${url}/files`)).json(), []);
    await send(url, uploadOf('later'));
    assert.equal((await remove()).headers.get('idempotency-replayed'), 'true');
    assert.equal(await (await fetch(`${url}/files/a.txt`)).text(), 'later');
  },
);
