import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { runProgram as run } from './support/program.ts';
import { testAtLength } from './support/long.ts';
import { connectRaw, get } from './support/raw-client.ts';
import { assertWithin } from './support/pace.ts';
import { projectFolder } from './support/source.ts';
import { until } from './support/until.ts';
import { connectReady } from './support/ws-clients.ts';

/** The head of a request whose body of so many bytes is asked for. */
const expecting = (bytes: number): readonly string[] => [
  'POST /posts HTTP/1.1',
  'Host: a',
  'Content-Type: application/json',
  `Content-Length: ${bytes}`,
  'Expect: 100-continue',
];

describe('a start', { concurrency: true }, () => {
  test('says in one line where it listens', async (t) => {
    const server = await run(t);
    const { line, port } = await server.listening();
    const { level, event, url, ui, address } = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual([level, event, url], ['info', 'listening', `http://127.0.0.1:${port}`]);
    assert.deepEqual([ui, address], [`${String(url)}/graphql-ui/`, '127.0.0.1']);
    assert.equal((await fetch(`${String(url)}/hello`)).status, 200);
    assert.equal(server.errors(), '');
    for (const HOST of ['0.0.0.0', '']) {
      const all = await (await run(t, { env: { HOST } })).listening();
      const { url: local, address: own } = JSON.parse(all.line) as Record<string, unknown>;
      assert.equal(local, `http://localhost:${all.port}`);
      assert.match(String(own), HOST === '' ? /^(?:0\.0\.0\.0|\[::\])$/ : /^0\.0\.0\.0$/);
    }
  });

  test('with bad settings ends with a line for each of them', async (t) => {
    const env = { PORT: 'eighty', BODY_BYTES_MAX: '1', JWT_SECRET: 'too short' };
    const server = await run(t, { env });
    const { code } = await server.ended();
    assert.equal(code, 1);
    const lines = server.errors().trimEnd().split('\n');
    assert.equal(lines.length, 3);
    for (const [at, name] of ['PORT', 'JWT_SECRET', 'BODY_BYTES_MAX'].entries()) {
      assert.match(lines[at] ?? '', new RegExp(`^inkwell: ${name} must `), `round ${at}`);
    }
    assert.doesNotMatch(server.errors(), /too short|eighty/);
    assert.equal(server.output(), '');
  });

  test('on a port in use ends with one line that names it', async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    t.after(() => other.close());
    const { port } = other.address() as AddressInfo; // it listens on TCP
    const server = await run(t, { env: { PORT: String(port) } });
    assert.equal((await server.ended()).code, 1);
    assert.equal(server.errors(), `inkwell: PORT: port ${port} of 127.0.0.1 is in use.\n`);
    assert.deepEqual(await readdir(server.folder), []);
  });
});

describe('a stop', { concurrency: true }, () => {
  test('lets requests finish, ends the rest, and exits with 0', async (t) => {
    // A request that waits for the rest is slow, and would have a line.
    const server = await run(t, { env: { LOG_REQUESTS: 'none' } });
    const { port } = await server.listening();
    const [idle, half, silent, busy] = await Promise.all(
      Array.from({ length: 4 }, () => connectRaw(t, port)),
    );
    assert.ok(idle && half && silent && busy);
    const webSocket = await connectReady(port);
    await idle.ask(get('/hello'));
    half.send('GET /hello HTTP/1.1\r\nHo');
    const body = '{"title":"a","content":"b"}';
    assert.equal((await busy.ask(expecting(body.length))).status, 100);
    const signalled = performance.now();
    server.child.kill('SIGTERM');
    const ended = server.ended();
    await Promise.all([idle.ended(), half.ended(), silent.ended()]);
    // A request may be on its way on a connection that is idle.
    assert.ok(performance.now() - signalled > 900, 'idle connections end after a second');
    const response = await busy.ask(body);
    assert.deepEqual([response.status, response.headers.get('connection')], [201, 'close']);
    assert.equal((await webSocket.closed).code, 1001);
    const { code, milliseconds } = await ended;
    assert.equal(code, 0);
    assertWithin(5_000, milliseconds);
    assert.match(
      server.output(),
      /"event":"stopping","signal":"SIG[A-Z]+"\}\n(?:.*\n)*.*"change".*\n.*"stopped"\}\n$/,
    );
    assert.deepEqual(await readdir(server.folder), []);
  });

  test('ends at once on a second signal', async (t) => {
    const server = await run(t);
    const { port } = await server.listening();
    const client = await connectRaw(t, port);
    await client.ask(expecting(9));
    const idle = await connectRaw(t, port);
    server.child.kill('SIGTERM');
    await idle.ended();
    server.child.kill('SIGTERM');
    const { code, milliseconds } = await server.ended();
    assert.equal(code, 1);
    assertWithin(4_000, milliseconds);
  });
});

describe('LOG_REQUESTS and LOG_FORMAT', { concurrency: true }, () => {
  test('all: no line is left out, and none is lost with the end', async (t) => {
    const server = await run(t, { env: { LOG_REQUESTS: 'all' } });
    const { port } = await server.listening();
    const client = await connectRaw(t, port);
    const count = 400;
    for (let at = 0; at < count; at += 1) {
      if (at % 20 === 0) client.send('GET /hello HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20));
      assert.equal((await client.response()).status, 200, `round ${at}`);
    }
    // Every signal that ends it does so cleanly.
    server.child.kill('SIGINT');
    assert.equal((await server.ended()).code, 0);
    assert.equal(server.output().match(/"event":"request".*"status":200/g)?.length, count);
  });

  test('pretty: lines are for a person', async (t) => {
    const env = { LOG_FORMAT: 'pretty', REQUEST_MEMORY_BYTES_MAX: '99999999999' };
    const server = await run(t, { env });
    await until('a warning', () => server.output().includes('WARN'));
    server.child.kill('SIGHUP');
    assert.equal((await server.ended()).code, 0);
    assert.match(server.output(), /^\d\d:\d\d:\d\d\.\d{3} WARN  the limits allow more /m);
  });
});

test('the memory of a container is what there is', async (t) => {
  const code = 'process.constrainedMemory = () => 209715200';
  const server = await run(t, { flags: ['--import', `data:text/javascript,${code}`] });
  await until('a warning', () => server.output().includes('"memoryMiB":200'));
});

describe('whatever happens', { concurrency: true }, () => {
  test('a closed standard output does not stop the service', async (t) => {
    const server = await run(t);
    const { port } = await server.listening();
    server.child.stdout?.destroy();
    const path = `http://127.0.0.1:${port}/hello`;
    assert.equal((await fetch(path)).status, 200);
    const client = await connectRaw(t, port);
    server.child.kill('SIGTERM'); // it logs that it stops
    await client.ended();
    assert.equal((await server.ended()).code, 0);
    assert.equal(server.errors(), '');
  });

  testAtLength('a stop waits 6 s for a request that is still coming', async (t) => {
    const server = await run(t);
    const { port } = await server.listening();
    const client = await connectRaw(t, port);
    await client.ask(expecting(900_000));
    const dripping = setInterval(() => client.send('x'.repeat(100)), 50);
    t.after(() => clearInterval(dripping));
    const other = await connectRaw(t, port);
    assert.equal((await other.ask(get('/hello'))).status, 200);
    server.child.kill('SIGTERM');
    const { code, milliseconds } = await server.ended();
    assert.equal(code, 0);
    assert.ok(milliseconds > 5_500 && milliseconds < 12_000, `${milliseconds} ms`);
  });

  test('a log that is not read any more does not stop the service, or fill it', async (t) => {
    const server = await run(t, { env: { LOG_REQUESTS: 'all' } });
    const { port } = await server.listening();
    const client = await connectRaw(t, port);
    const flood = async (count: number): Promise<void> => {
      const head = `Host: a\r\nX-Request-Id: ${'x'.repeat(128)}`;
      client.send(`GET /hello HTTP/1.1\r\n${head}\r\n\r\n`.repeat(count));
      for (let at = 0; at < count; at += 1)
        assert.equal((await client.response()).status, 200, `round ${at}`);
    };
    server.child.stdout?.pause();
    const requests = 6_000;
    for (let sent = 0; sent < requests; sent += 30) await flood(30);
    server.child.stdout?.resume();
    // What was dropped is told of with the first line of a later second.
    await until('a line about dropped lines', async () => {
      assert.equal((await fetch(`http://127.0.0.1:${port}/hello`)).status, 200);
      return server.output().includes('"log lines dropped"');
    });
    const taken = server.output().match(/"event":"request"/g)?.length ?? 0;
    const dropped = Number(/"log lines dropped".*"dropped":(\d+)/.exec(server.output())?.[1]);
    assert.ok(dropped > 100, `${dropped} dropped`);
    assert.ok(taken + dropped >= requests, `${taken} taken, ${dropped} dropped`);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended()).code, 0);
    assert.match(server.output(), /"stopped"\}\n$/);
  });

  for (const fault of ['Promise.reject(new Error("x"))', 'throw new Error("x")']) {
    test(`${fault} outside any request: one log line, exit 1`, async (t) => {
      // Waits in the same process until the service has begun to listen for faults.
      const ready = 'process.listenerCount("unhandledRejection") > 0';
      const code = `const t = setInterval(() => { if (${ready}) { clearInterval(t); ${fault} } }, 5)`;
      const server = await run(t, { flags: ['--import', `data:text/javascript,${code}`] });
      assert.equal((await server.ended()).code, 1);
      const lines = server.output().trimEnd().split('\n');
      const { level, event, reason } = JSON.parse(lines.at(-1) ?? '') as Record<string, string>;
      assert.deepEqual([level, event], ['error', 'unexpected failure']);
      assert.match(reason ?? '', /^Error: x/);
      assert.equal(lines.filter((line) => line.includes('unexpected failure')).length, 1);
      assert.equal(server.errors(), '');
    });
  }
});

test('the first line names what the limits allow, with a warning where that is too much', async (t) => {
  const [least, more] = ['1048576', '1073741824'];
  const found: [number, boolean][] = [];
  for (const REQUEST_MEMORY_BYTES_MAX of [least, more]) {
    const env = { REQUEST_MEMORY_BYTES_MAX, MEMORY_STORE_BYTES_MAX: least };
    const program = await run(t, { env, flags: ['--max-old-space-size=1024'] });
    const { line } = await program.listening();
    const { memoryMaxMiB } = JSON.parse(line) as { readonly memoryMaxMiB: number };
    program.child.kill('SIGTERM');
    await program.ended();
    const isWarned = program.output().includes('the limits allow more memory than is available');
    found.push([memoryMaxMiB, isWarned]);
  }
  const fitting = found[0]?.[0] ?? 0;
  assert.ok(fitting > 256, `${fitting} MiB`);
  assert.deepEqual(found, [
    [fitting, false],
    [fitting + 1_023, true],
  ]);
});

const noNpm = spawnSync('npm', ['--version']).status !== 0 && 'there is no npm on this machine';

test('a signal ends at once a start while the store has not answered yet', async (t) => {
  const store = createServer().listen(0, '127.0.0.1');
  await once(store, 'listening');
  t.after(() => store.close());
  const { port } = store.address() as AddressInfo; // it listens on TCP
  const server = await run(t, { env: { STORE_URL: `postgres://a:b@127.0.0.1:${port}/c` } });
  const [socket] = (await once(store, 'connection')) as [Socket];
  socket.on('error', () => undefined);
  server.child.kill('SIGTERM');
  assert.equal((await server.ended()).code, 128 + 15);
  socket.destroy();
});

test('a signal reaches the server that npm start has started', { skip: noNpm }, async (t) => {
  const env = { ...process.env, PORT: '0', HOST: '127.0.0.1' };
  const child = spawn('npm', ['start'], {
    cwd: projectFolder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await until('a server that listens', () => /"event":"listening"/.test(output));
  child.kill('SIGTERM');
  // All that has the pipe has ended.
  await once(child, 'close');
  assert.match(output, /"event":"stopped"/);
});
