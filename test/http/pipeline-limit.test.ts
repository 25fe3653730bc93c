import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { textReply } from '../../dist/http/message.js';
import { gate, startHttp } from '../support/http-kit.ts';
import { keepOthersServed } from '../support/prober.ts';
import { connectRaw, get, type RawClient } from '../support/raw-client.ts';

keepOthersServed();

const one = get('/count');

/** `/count` answers with how often it was asked, `/echo` with the length of what it got. */
async function start(t: TestContext, max: string) {
  let asked = 0;
  const slow = gate();
  const { port } = await startHttp(t, {
    env: { PIPELINED_REQUESTS_MAX: max },
    routes: {
      'GET /count': () => {
        asked += 1;
        return textReply(200, String(asked));
      },
      'GET /slow': async () => {
        await slow.opened;
        return textReply(200, 'slow');
      },
      'POST /echo': async (request) => {
        const body = await request.readBody(1_000_000);
        return textReply(200, String(body.length));
      },
    },
  });
  return { port, slow, asked: () => asked };
}

/** The answers' texts, and whether each says that the connection ends. */
async function readAll(client: RawClient, count: number): Promise<[string, boolean][]> {
  const answers: [string, boolean][] = [];
  while (answers.length < count) {
    const { body, headers } = await client.answer();
    answers.push([body.toString(), headers.get('connection') === 'close']);
  }
  return answers;
}

function counted(count: number, isLast: boolean): [string, boolean][] {
  return Array.from({ length: count }, (_, at) => [String(at + 1), isLast && at === count - 1]);
}

test('as many requests as that are answered, and the connection stays open', async (t) => {
  const { port } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(one.repeat(9));
  assert.deepEqual(await readAll(client, 9), counted(9, false));
  client.send(one);
  assert.deepEqual(await readAll(client, 1), [['10', false]]);
});

for (const [what, sent] of [
  ['the last one that is answered says so, and those behind it are not run', 2_000],
  ['what stays unread behind the last one does not take its answer away', 40_000],
] as const) {
  test(what, async (t) => {
    const { port, asked } = await start(t, '10');
    const client = await connectRaw(t, port);
    client.send(one.repeat(sent));
    assert.deepEqual(await readAll(client, 10), counted(10, true));
    await client.ended();
    assert.equal(asked(), 10);
  });
}

test('what comes later behind the last one is not run either', async (t) => {
  const { port, slow, asked } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(`${one.repeat(7)}${get('/slow')}${one.repeat(3)}`);
  assert.deepEqual(await readAll(client, 7), counted(7, false));
  for (let round = 0; round < 5; round += 1) {
    client.send(one.repeat(5));
    await delay(20);
  }
  slow.open();
  const answers = await readAll(client, 3);
  assert.deepEqual(answers, [
    ['slow', false],
    ['8', false],
    ['9', true],
  ]);
  await client.ended();
  assert.equal(asked(), 9);
});

test('each turn of the loop counts anew', async (t) => {
  const { port } = await start(t, '10');
  const client = await connectRaw(t, port);
  for (let round = 0; round < 10; round += 1) {
    client.send(one.repeat(9));
    const answers = await readAll(client, 9);
    assert.deepEqual(
      answers.map(([, ends]) => ends),
      Array.from({ length: 9 }, () => false),
    );
  }
});

test('each connection is counted by itself', async (t) => {
  const { port } = await start(t, '10');
  const clients = await Promise.all(Array.from({ length: 5 }, () => connectRaw(t, port)));
  for (const client of clients) client.send(one.repeat(9));
  for (const client of clients) {
    const answers = await readAll(client, 9);
    assert.ok(answers.every(([, ends]) => !ends));
  }
});

test('the last one is read whole, also where its body comes later', async (t) => {
  const { port } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(`${one.repeat(9)}POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n`);
  assert.deepEqual(await readAll(client, 9), counted(9, false));
  client.send('x'.repeat(300_000));
  assert.deepEqual(await readAll(client, 1), [['300000', true]]);
  await client.ended();
});

test('the last one may wait behind a slow one', async (t) => {
  const { port, slow } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(`${get('/slow')}${one.repeat(100)}`);
  const other = await connectRaw(t, port);
  other.send(one);
  assert.deepEqual(await readAll(other, 1), [['10', false]]);
  slow.open();
  const answers = await readAll(client, 10);
  assert.deepEqual(answers, [['slow', false], ...counted(9, true)]);
  await client.ended();
});
