import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createHealthHandlers } from '../../dist/handlers/health.js';
import type { HttpResponse } from '../../dist/http/message.js';
import { type Ended, runCommand, runCommandHere } from '../support/command.ts';
import { gate } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { type Program, runProgram } from '../support/program.ts';
import { ask as askRaw, connectRaw, get } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { until } from '../support/until.ts';

const ready = { status: 'ready', checks: { server: 'ok', store: 'ok' } };
const away = { status: 'not ready', checks: { server: 'ok', store: 'does not answer' } };

async function statusAndBody(response: Response): Promise<[number, unknown]> {
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  return [response.status, await response.json()];
}

test('a server is alive and ready once it listens', async (t) => {
  const server = await startServer(t);
  assert.deepEqual(await statusAndBody(await server.fetch('/livez')), [200, { status: 'live' }]);
  assert.deepEqual(await statusAndBody(await server.fetch('/readyz')), [200, ready]);
  assert.equal((await server.fetch('/readyz', { method: 'HEAD' })).status, 200);
  assert.equal((await server.fetch('/readyz', { method: 'POST' })).status, 405);
});

/** The handlers alone, around a store and a clock of the test's own. */
function createHealth(ping: () => void | Promise<void>): {
  readonly ask: (name?: 'live' | 'ready') => Promise<HttpResponse>;
  readonly health: ReturnType<typeof createHealthHandlers>;
  readonly clock: { now: number };
} {
  const clock = { now: 0 };
  const health = createHealthHandlers({ ping }, () => clock.now);
  return { health, clock, ask: async (name = 'ready') => health[name]() };
}

describe('the question to the store', () => {
  it('is asked once a second, however many probes there are', async () => {
    let asked = 0;
    const { ask, clock } = createHealth(() => void (asked += 1));
    await Promise.all(times(100).map(() => ask()));
    clock.now = 999;
    await ask();
    assert.equal(asked, 1);
    clock.now = 1_000;
    assert.equal((await ask()).status, 200);
    assert.equal(asked, 2);
  });

  it('that nobody answers is 503 after a second, and is not asked again before it ends', async (t) => {
    // The timer of the question alone would not keep the process.
    const kept = setInterval(() => undefined, 60_000);
    t.after(() => clearInterval(kept));
    const pong = gate();
    let asked = 0;
    const { ask, clock } = createHealth(() => {
      asked += 1;
      return pong.opened;
    });
    const first = ask();
    clock.now = 5_000;
    assert.equal((await first).status, 503);
    assert.equal((await ask()).status, 503);
    assert.equal(asked, 1);
    pong.open();
    await until('a second question', async () => (await ask()).status === 200);
    assert.equal(asked, 2);
  });
});

test('while the database is away the server is not ready, but alive', { skip }, async (t) => {
  // Each look at the clock is a second later, so that each question goes to the database.
  let now = 0;
  const env = { STORE_URL: await database.clearedDatabase() };
  const server = await startServer(t, { env, monotonicNow: () => (now += 1_000) });
  const untilReady = async (status: number): Promise<unknown> => {
    let body: unknown;
    await until(`${status} of /readyz`, async () => {
      const response = await server.fetch('/readyz');
      body = await response.json();
      return response.status === status;
    });
    return body;
  };
  assert.deepEqual(await untilReady(200), ready);
  await database.stop();
  assert.deepEqual(await untilReady(503), away);
  for (const path of ['/livez', '/hello'])
    assert.equal((await server.fetch(path)).status, 200, path);
  await database.start();
  assert.deepEqual(await untilReady(200), ready);
});

async function runOnPorts(
  context: TestContext,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly program: Program; readonly main: string; readonly admin: string }> {
  const program = await runProgram(context, { env: { ADMIN_PORT: '0', ...env } });
  const { line, port } = await program.listening();
  const { adminUrl } = JSON.parse(line) as { readonly adminUrl: string };
  return { program, main: `http://127.0.0.1:${port}`, admin: adminUrl };
}

describe('ADMIN_PORT', { concurrency: true }, () => {
  it('answers about health, and has nothing else', async (t) => {
    const { admin, main } = await runOnPorts(t);
    assert.notEqual(admin, main);
    assert.deepEqual(await statusAndBody(await fetch(`${admin}/livez`)), [200, { status: 'live' }]);
    assert.deepEqual(await statusAndBody(await fetch(`${admin}/readyz`)), [200, ready]);
    for (const path of ['/hello', '/graphql', '/posts']) {
      assert.equal((await fetch(admin + path)).status, 404, path);
    }
    const upgrade = get('/graphql', 'Connection: Upgrade', 'Upgrade: websocket');
    assert.equal((await askRaw(t, Number(new URL(admin).port), upgrade)).status, 404);
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

  it('goes on to answer during the drain', async (t) => {
    const { program, main, admin } = await runOnPorts(t);
    const busy = await connectRaw(t, Number(new URL(main).port));
    const head = ['POST /posts HTTP/1.1', 'Host: a', 'Content-Type: application/json'];
    busy.send([...head, 'Content-Length: 27', 'Expect: 100-continue', '', ''].join('\r\n'));
    assert.equal((await busy.response()).status, 100);
    const idle = await connectRaw(t, Number(new URL(main).port));
    program.child.kill('SIGTERM');
    await idle.ended();
    const stopping = { status: 'not ready', checks: { server: 'is stopping', store: 'ok' } };
    assert.deepEqual(await statusAndBody(await fetch(`${admin}/readyz`)), [503, stopping]);
    busy.send('{"title":"a","content":"b"}');
    assert.equal((await busy.response()).status, 201);
    assert.equal((await program.ended()).code, 0);
  });
});

/** Asks until the server has taken notice of a signal. */
async function untilNotReady(url: string): Promise<void> {
  await until('503 of /readyz', async () => (await fetch(`${url}/readyz`)).status === 503);
}

describe('DRAIN_DELAY_SECONDS', { concurrency: true }, () => {
  it('ends with a drain', async (t) => {
    const { program } = await runOnPorts(t, { DRAIN_DELAY_SECONDS: '1' });
    program.child.kill('SIGTERM');
    assert.equal((await program.ended()).code, 0);
    assert.match(program.output(), /"stopping".*\n(?:.*\n)*.*"stopped"\}\n$/);
  });

  it('serves for so long after SIGTERM, not ready, or until a second signal', async (t) => {
    const { program, main, admin } = await runOnPorts(t, { DRAIN_DELAY_SECONDS: '3600' });
    program.child.kill('SIGTERM');
    await untilNotReady(main);
    const hello = await fetch(`${main}/hello`);
    // So that no connection is idle when the drain ends it: a request on its way would be reset.
    assert.deepEqual([hello.status, hello.headers.get('connection')], [200, 'close']);
    assert.equal((await fetch(`${admin}/readyz`)).status, 503);
    assert.equal((await fetch(`${admin}/livez`)).status, 200);
    program.child.kill('SIGTERM');
    assert.equal((await program.ended()).code, 1);
  });
});

describe('--healthcheck', { concurrency: true }, () => {
  const check = (env: Readonly<Record<string, string>>): Promise<Ended> =>
    runCommandHere(['--healthcheck'], { env });

  it('exits with 0 where the server is ready, with 1 where it is stopping', async (t) => {
    const { program, main, admin } = await runOnPorts(t, { DRAIN_DELAY_SECONDS: '3600' });
    const [PORT, ADMIN_PORT] = [main, admin].map((url) => new URL(url).port);
    assert.ok(PORT !== undefined && ADMIN_PORT !== undefined);
    for (const env of [{ PORT }, { PORT, HOST: '127.0.0.1' }, { PORT: '1', ADMIN_PORT }]) {
      const run = await check(env);
      assert.deepEqual([run.code, JSON.parse(run.output)], [0, ready], run.errors);
    }
    program.child.kill('SIGTERM');
    await untilNotReady(main);
    const { code, errors } = await runCommand(['--healthcheck'], { env: { PORT } });
    assert.equal(code, 1);
    assert.match(errors, /"is stopping"/);
  });

  it('exits with 1 and a line where nobody answers, or the port is not known', async (t) => {
    const closed = 'inkwell: No response from port 1 of 127.0.0.1 (ECONNREFUSED).\n';
    const unknown = 'inkwell: PORT is 0: the port is not known.\n';
    for (const [PORT, errors] of Object.entries({ 1: closed, 0: unknown })) {
      await t.test(PORT, async () => {
        assert.deepEqual(await check({ PORT, HOST: '127.0.0.1' }), { code: 1, output: '', errors });
      });
    }
    const silent = createServer().listen(0, '127.0.0.1');
    t.after(() => {
      silent.close();
      silent.closeAllConnections();
    });
    await once(silent, 'listening');
    const PORT = String((silent.address() as AddressInfo).port);
    const ended = check({ PORT, HOST: '127.0.0.1' });
    const late = { code: undefined, output: '', errors: 'no response within 30 s' };
    const { code, errors } = await Promise.race([ended, pause(30_000, late, { ref: false })]);
    assert.deepEqual([code, errors.includes(`No response from port ${PORT}`)], [1, true], errors);
    const faulty = await check({ PORT: 'x' });
    assert.equal(faulty.code, 1);
    assert.match(faulty.errors, /PORT must/);
  });
});
