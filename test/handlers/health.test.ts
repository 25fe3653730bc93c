import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createHealthHandlers } from '../../dist/handlers/health.js';
import { type Ended, runCommandHere } from '../support/command.ts';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { runProgram } from '../support/program.ts';
import { ask as askRaw, connectRaw, get } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { until } from '../support/until.ts';

const ready = { status: 'ready', checks: { server: 'ok', store: 'ok' } };
const away = { status: 'not ready', checks: { server: 'ok', store: 'does not answer' } };
const stopping = { status: 'not ready', checks: { server: 'is stopping', store: 'ok' } };

async function assertHealth(response: Response, expected: readonly [number, unknown]) {
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.deepEqual([response.status, await response.json()], expected);
}

test('a server is alive and ready once it listens', async (t) => {
  const server = await startServer(t);
  await assertHealth(await server.fetch('/livez'), [200, { status: 'live' }]);
  await assertHealth(await server.fetch('/readyz'), [200, ready]);
  assert.equal((await server.fetch('/readyz', { method: 'HEAD' })).status, 200);
  assert.equal((await server.fetch('/readyz', { method: 'POST' })).status, 405);
});

describe('the question to the store', () => {
  it('is asked once a second, however many probes there are', async () => {
    let [asked, now] = [0, 0];
    const health = createHealthHandlers({ ping: () => void (asked += 1) }, () => now);
    await Promise.all(times(100).map(() => health.ready()));
    now = 999;
    await health.ready();
    assert.equal(asked, 1);
    now = 1_000;
    assert.equal((await health.ready()).status, 200);
    assert.equal(asked, 2);
  });

  it('that nobody answers is 503 after a second, and is not asked again before it ends', async (t) => {
    // The timer of the question alone would not keep the process.
    const kept = setInterval(() => undefined, 60_000);
    t.after(() => clearInterval(kept));
    const pong = gate();
    let [asked, now] = [0, 0];
    const ping = () => {
      asked += 1;
      return pong.opened;
    };
    const health = createHealthHandlers({ ping }, () => now);
    const first = health.ready();
    now = 5_000;
    assert.equal((await first).status, 503);
    assert.equal((await health.ready()).status, 503);
    assert.equal(asked, 1);
    pong.open();
    await until('a second question', async () => (await health.ready()).status === 200);
    assert.equal(asked, 2);
  });
});

test('while the database is away the server is not ready, but alive', { skip }, async (t) => {
  // Each look at the clock is a second later, so that each question goes to the database.
  let now = 0;
  const env = { STORE_URL: await database.clearedDatabase() };
  const server = await startServer(t, { env, monotonicNow: () => (now += 1_000) });
  const untilReady = async (status: number, expected: object): Promise<void> => {
    let body: unknown;
    await until(`${status} of /readyz`, async () => {
      const response = await server.fetch('/readyz');
      body = await response.json();
      return response.status === status;
    });
    assert.deepEqual(body, expected);
  };
  await untilReady(200, ready);
  await database.stop();
  await untilReady(503, away);
  for (const path of ['/livez', '/hello']) assert.equal((await server.fetch(path)).status, 200);
  await database.start();
  await untilReady(200, ready);
});

async function runOnPorts(context: TestContext, env: Readonly<Record<string, string>> = {}) {
  const program = await runProgram(context, { env: { ADMIN_PORT: '0', ...env } });
  const { line, port } = await program.listening();
  const { adminUrl } = JSON.parse(line) as { readonly adminUrl: string };
  return { program, main: `http://127.0.0.1:${port}`, port, admin: adminUrl };
}

describe('ADMIN_PORT', () => {
  it('answers about health and has nothing else, and goes on to answer during the drain', async (t) => {
    const { program, port, main, admin } = await runOnPorts(t);
    assert.notEqual(admin, main);
    await assertHealth(await fetch(`${admin}/livez`), [200, { status: 'live' }]);
    await assertHealth(await fetch(`${admin}/readyz`), [200, ready]);
    for (const path of ['/hello', '/graphql', '/posts']) {
      assert.equal((await fetch(admin + path)).status, 404, path);
    }
    const upgrade = get('/graphql', 'Connection: Upgrade', 'Upgrade: websocket');
    assert.equal((await askRaw(t, Number(new URL(admin).port), upgrade)).status, 404);
    const busy = await connectRaw(t, port);
    const head = ['POST /posts HTTP/1.1', 'Host: a', 'Content-Type: application/json'];
    busy.send([...head, 'Content-Length: 27', 'Expect: 100-continue', '', ''].join('\r\n'));
    assert.equal((await busy.response()).status, 100);
    const idle = await connectRaw(t, port);
    program.child.kill('SIGTERM');
    await idle.ended();
    await assertHealth(await fetch(`${admin}/readyz`), [503, stopping]);
    busy.send('{"title":"a","content":"b"}');
    assert.equal((await busy.response()).status, 201);
    assert.equal((await program.ended()).code, 0);
  });

  it('in use ends the start with one line that names it', async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    t.after(() => other.close());
    const { port } = other.address() as AddressInfo; // it listens on TCP
    const program = await runProgram(t, { env: { ADMIN_PORT: String(port) } });
    assert.equal((await program.ended()).code, 1);
    assert.equal(program.errors(), `inkwell: ADMIN_PORT: port ${port} of 127.0.0.1 is in use.\n`);
  });
});

const check = (env: Readonly<Record<string, string>>): Promise<Ended> =>
  runCommandHere(['--healthcheck'], { env });

describe('DRAIN_DELAY_SECONDS', () => {
  it('ends with a drain', async (t) => {
    const { program } = await runOnPorts(t, { DRAIN_DELAY_SECONDS: '1' });
    program.child.kill('SIGTERM');
    assert.equal((await program.ended()).code, 0);
    assert.match(program.output(), /"stopping".*\n(?:.*\n)*.*"stopped"\}\n$/);
  });

  it('serves for so long after SIGTERM, not ready, or until a second signal', async (t) => {
    const { program, main, admin } = await runOnPorts(t, { DRAIN_DELAY_SECONDS: '3600' });
    const [PORT = '', ADMIN_PORT = ''] = [main, admin].map((url) => new URL(url).port);
    for (const env of [{ PORT }, { PORT, HOST: '127.0.0.1' }, { PORT: '1', ADMIN_PORT }]) {
      const run = await check(env);
      assert.deepEqual([run.code, JSON.parse(run.output)], [0, ready], run.errors);
    }
    program.child.kill('SIGTERM');
    await until('503', async () => (await fetch(`${main}/readyz`)).status === 503);
    const hello = await fetch(`${main}/hello`);
    // So that no connection is idle when the drain ends it: a request on its way would be reset.
    assert.deepEqual([hello.status, hello.headers.get('connection')], [200, 'close']);
    assert.equal((await fetch(`${admin}/readyz`)).status, 503);
    assert.equal((await fetch(`${admin}/livez`)).status, 200);
    const { code, errors } = await check({ PORT });
    assert.equal(code, 1);
    assert.match(errors, /"is stopping"/);
    program.child.kill('SIGTERM');
    assert.equal((await program.ended()).code, 1);
  });
});

test('--healthcheck exits with 1 and a line where nobody answers, or no port is known', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  t.after(() => {
    silent.close();
    silent.closeAllConnections();
  });
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  for (const [PORT, said] of [
    ['1', /^inkwell: No response from port 1 of 127\.0\.0\.1 \(ECONNREFUSED\)\.\n$/],
    ['0', /^inkwell: PORT is 0: the port is not known\.\n$/],
    ['x', /PORT must/],
    [`${port}`, new RegExp(`No response from port ${port}`)],
  ] as const) {
    const late = { code: undefined, errors: 'no response within 30 s' };
    const ended = check({ PORT, HOST: '127.0.0.1' });
    const { code, errors } = await Promise.race([ended, pause(30_000, late, { ref: false })]);
    assert.equal(code, 1, errors);
    assert.match(errors, said);
  }
});
