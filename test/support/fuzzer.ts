/** Sends requests that are almost right, on every route, to the program itself. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { createRandom, mutate, mutateBytes, type Random } from './fuzz-mutate.js';
import { type FuzzBody, type FuzzRequest, type Known, seeds } from './fuzz-seeds.js';
import { logIn } from './login.js';
import type { Program } from './program.js';

export const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32);

const connectionsAtOnce = 32;
const requestsOfConnection = 6;

/** A store that is soon full, and that deletions make room in: both sides of its bound. */
export const smallStore = {
  MEMORY_STORE_BYTES_MAX: String(1024 * 1024),
  STORED_BYTES_MAX: '65536',
  // What waits for the rest of a request ends soon.
  IDLE_TIMEOUT_SECONDS: '2',
  KEEP_ALIVE_SECONDS: '1',
};

/** Ids and a token that requests can be made with. */
async function know(url: string, random: Random): Promise<Known> {
  const idsOf = async (path: string): Promise<string[]> => {
    const list = (await (await fetch(url + path)).json()) as { readonly id: string }[];
    return list.map(({ id }) => id);
  };
  const posts = await idsOf('/posts');
  const comments = await idsOf(`/posts/${posts[0] ?? ''}/comments`);
  const ids = { posts, comments, todos: await idsOf('/api/todos'), articles: ['1', '2'] };
  return { random, ids, token: await logIn({ url }) };
}

export type Fuzzer = Awaited<ReturnType<typeof createFuzzer>>;

export async function createFuzzer(port: number) {
  const known = await know(`http://127.0.0.1:${port}`, createRandom(seed));
  const { random } = known;
  const posts = [...known.ids.posts];
  const pool = { ...known, ids: { ...known.ids, posts } };
  const weighted = seeds.flatMap((each) => Array.from({ length: each.weight }, () => each));
  const statuses = new Map<string, number>();
  const state = { requests: 0 };

  const makeOne = (): FuzzRequest => {
    let request = random.pick(weighted).make(pool);
    if (request.method === 'DELETE' && posts.length > 1) posts.pop();
    if (random.oneIn(3)) return request;
    for (let count = random.below(3); count >= 0; count -= 1) request = mutate(request, random);
    return request;
  };
  /** The requests of one connection. */
  const makeMany = () => {
    const pieces: Buffer[] = [];
    let upgrades = false;
    for (let count = random.below(requestsOfConnection); count >= 0; count -= 1) {
      const request = makeOne();
      state.requests += 1;
      pieces.push(toBytes(request, random));
      upgrades = request.messages !== undefined;
      if (upgrades) break; // nothing is HTTP after it
    }
    const bytes = Buffer.concat(pieces);
    return [random.oneIn(8) ? mutateBytes(bytes, random) : bytes, upgrades] as const;
  };
  const send = async (bytes: Buffer, upgrades: boolean): Promise<WireResponse> => {
    const described = JSON.stringify(bytes.subarray(0, 4_000).toString('latin1'));
    const response = await exchange(port, bytes, upgrades).catch((error: unknown) => {
      throw new Error(`${String(error)} FUZZ_SEED=${seed} ${described}`);
    });
    const failed = response.statuses.includes(500) || /Internal server error/.test(response.text);
    assert.ok(!failed, `FUZZ_SEED=${seed} ${described} → ${response.text}`);
    for (const status of response.statuses.map(String)) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    for (const [, id = ''] of response.text.matchAll(/^location: \/posts\/(\S+)/gim)) {
      if (posts.length < 200) posts.push(id);
    }
    return response;
  };
  const sendUntil = async (end: number): Promise<void> => {
    while (state.requests < end) await send(...makeMany());
  };

  return {
    /** Each good request once, and as it is: it must succeed. */
    async sendSeeds() {
      for (const { status, make } of seeds) {
        const request = make(pool);
        const upgrades = request.messages !== undefined;
        const response = await send(toBytes(request, random), upgrades);
        const { method, target } = request;
        assert.equal(response.statuses[0], status, `${method} ${target}: ${response.text}`);
      }
    },
    /** Until so many were sent. */
    async run(end: number) {
      const lanes = Array.from({ length: connectionsAtOnce }, () => sendUntil(end));
      await Promise.all(lanes);
    },
    requests: () => state.requests,
    /** Answers whose status begins so. */
    count(start: string) {
      const counted = [...statuses].filter(([status]) => status.startsWith(start));
      return counted.reduce((sum, [, count]) => sum + count, 0);
    },
  };
}

/** It runs, and nothing that it logged is a failure of its own. */
export function assertHarmless(program: Program): void {
  assert.equal(program.child.exitCode, null);
  assert.equal(program.errors(), '');
  const lines = program.output().trimEnd().split('\n');
  const failures = lines.filter(
    (line) => (JSON.parse(line) as { level: string }).level === 'error',
  );
  assert.deepEqual(failures.slice(0, 3), []);
}

/** What is stored can still be read, all of it. */
export async function assertWhole(url: string): Promise<void> {
  for (const path of ['/posts', '/api/todos', '/api/articles']) {
    assert.ok(Array.isArray(await (await fetch(url + path)).json()));
  }
  await (await fetch(`${url}/api/multiparts`)).formData();
}

/** A request, and after an upgrade its frames, as bytes. */
function toBytes(request: FuzzRequest, random: Random): Buffer {
  const { method, target, headers, messages } = request;
  const body = toBodyBytes(request.body);
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: fuzz.example'];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const chunked = body.length > 0 && random.oneIn(4);
  if (chunked) lines.push('Transfer-Encoding: chunked');
  else if (request.body.kind !== 'none') lines.push(`Content-Length: ${body.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const frames = (messages ?? []).map((message) => toFrame(message, random));
  if (messages !== undefined) frames.push(closeFrame);
  return Buffer.concat([head, chunked ? toChunks(body, random) : body, ...frames]);
}

function toBodyBytes(body: FuzzBody): Buffer {
  if (body.kind === 'none') return Buffer.alloc(0);
  if (body.kind === 'json') return Buffer.from(toText(body.value));
  const parts = body.parts.map(
    ({ head, content }) => `--${body.boundary}\r\n${head}\r\n\r\n${content}\r\n`,
  );
  return Buffer.from(`${parts.join('')}--${body.boundary}--\r\n`);
}

/** Nothing is a body too. */
function toText(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}

function toChunks(body: Buffer, random: Random): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + 1 + random.below(body.length));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    at += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}

const textFrame = 0x81;
/** RFC 6455 §5.5.1 with status 1000, under a mask of zeros. */
const closeFrame = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]);

/** A masked frame (RFC 6455 §5.2); now and then of an odd kind. The mask of zeros is a legal one. */
function toFrame(message: unknown, random: Random): Buffer {
  const payload = Buffer.from(toText(message));
  const kind = random.oneIn(30) ? random.below(256) : textFrame;
  const head =
    payload.length < 126
      ? [kind, 0x80 | payload.length]
      : [kind, 0x80 | 126, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
}

/** A connection that takes longer than this for its responses hangs. */
const hangsAfterMilliseconds = 300_000;
const responseBytesMax = 64 * 1024;

interface WireResponse {
  /** How it begins, as latin1: enough for what it says of itself. */
  readonly text: string;
  readonly statuses: readonly number[];
}

/**
 * Sends it all, ends this side, and reads until the server ends the other. With `upgrades` this
 * side is ended once a response or a message came: a WebSocket is nothing without it. An event stream has no end:
 * it is left. Rejects where nothing ends.
 */
function exchange(port: number, bytes: Buffer, upgrades: boolean): Promise<WireResponse> {
  return new Promise((resolve, reject) => {
    let text = '';
    const statuses: number[] = [];
    const socket = connect({ port, host: '127.0.0.1' });
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, statuses });
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no end after ${hangsAfterMilliseconds} ms, only ${text.slice(0, 200)}`));
    }, hangsAfterMilliseconds);
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      // A status line may be cut in two: it is looked for once it is whole.
      const seen = Math.max(0, text.length - 12);
      if (text.length < responseBytesMax) {
        text += chunk;
        for (const [, status] of text.slice(seen).matchAll(statusLine)) {
          statuses.push(Number(status));
        }
      }
      if (eventStream.test(chunk)) finish();
      else if (upgrades && firstMessage.test(text)) socket.end();
    });
    // A reset is one of the ways in which a server ends a connection.
    socket.on('error', finish).on('close', finish);
    if (upgrades) socket.write(bytes);
    else socket.end(bytes);
  });
}

const statusLine = /HTTP\/1\.1 (\d{3}) /g;
/** Behind the head of a 101, or any other response. */
const firstMessage = /^HTTP\/1\.1 (?:101 [^]*?\r\n\r\n[^]|(?!101)\d)/;
const eventStream = /^content-type: text\/event-stream/im;
