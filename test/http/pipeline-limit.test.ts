import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { textReply } from '../../dist/http/message.js';
import { gate, startHttp } from '../support/http-kit.ts';
import { keepOthersServed } from '../support/prober.ts';
import { connectRaw, type RawClient } from '../support/raw-client.ts';

keepOthersServed();

const head = 'GET /count HTTP/1.1\r\nHost: a\r\n\r\n';

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
  client.send(head.repeat(9));
  assert.deepEqual(await readAll(client, 9), counted(9, false));
  client.send(head);
  assert.deepEqual(await readAll(client, 1), [['10', false]]);
});

test('the last one that is answered says so, and those behind it are not run', async (t) => {
  const { port, asked } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(head.repeat(2_000));
  assert.deepEqual(await readAll(client, 10), counted(10, true));
  await client.ended();
  assert.equal(asked(), 10);
});

test('what stays unread behind the last one does not take its answer away', async (t) => {
  const { port, asked } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(head.repeat(40_000));
  assert.deepEqual(await readAll(client, 10), counted(10, true));
  await client.ended();
  assert.equal(asked(), 10);
});

test('what comes later behind the last one is not run either', async (t) => {
  const { port, slow, asked } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(`${head.repeat(7)}${head.replace('count', 'slow')}${head.repeat(3)}`);
  assert.deepEqual(await readAll(client, 7), counted(7, false));
  for (let round = 0; round < 5; round += 1) {
    client.send(head.repeat(5));
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
    client.send(head.repeat(9));
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
  for (const client of clients) client.send(head.repeat(9));
  for (const client of clients) {
    const answers = await readAll(client, 9);
    assert.ok(answers.every(([, ends]) => !ends));
  }
});

test('the last one is read whole, also where its body comes later', async (t) => {
  const { port } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(`${head.repeat(9)}POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n`);
  assert.deepEqual(await readAll(client, 9), counted(9, false));
  client.send('x'.repeat(300_000));
  assert.deepEqual(await readAll(client, 1), [['300000', true]]);
  await client.ended();
});

test('the last one may wait behind a slow one', async (t) => {
  const { port, slow } = await start(t, '10');
  const client = await connectRaw(t, port);
  client.send(`${head.replace('count', 'slow')}${head.repeat(100)}`);
  const other = await connectRaw(t, port);
  other.send(head);
  assert.deepEqual(await readAll(other, 1), [['10', false]]);
  slow.open();
  const answers = await readAll(client, 10);
  assert.deepEqual(answers, [['slow', false], ...counted(9, true)]);
  await client.ended();
});
