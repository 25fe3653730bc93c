/** Sends requests that are almost right, on every route, to the program itself. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import * as fc from 'fast-check';
import { type Connection, connection, toText } from './fuzz-changes.ts';
import { type FuzzRequest, seeds } from './fuzz-seeds.ts';
import { logIn } from './login.ts';
import type { Program } from './program.ts';

export const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31);

const connectionsAtOnce = 32;

/** A store that is soon full, and that deletions make room in: both sides of its bound. */
export const smallStore = {
  MEMORY_STORE_BYTES_MAX: String(1024 * 1024),
  STORED_BYTES_MAX: '65536',
  // What waits for the rest of a request ends soon.
  IDLE_TIMEOUT_SECONDS: '2',
  KEEP_ALIVE_SECONDS: '1',
};

/** Ids and a token that requests can be made with. */
async function know(url: string): Promise<Record<string, string[]>> {
  const idsOf = async (path: string): Promise<string[]> => {
    const list = (await (await fetch(url + path)).json()) as { readonly id: string }[];
    return list.map(({ id }) => id);
  };
  const posts = await idsOf('/posts');
  const comments = await idsOf(`/posts/${posts[0] ?? ''}/comments`);
  const todos = await idsOf('/api/todos');
  return { posts, comments, todos, articles: ['1', '2'], token: [await logIn({ url })] };
}

export type Fuzzer = Awaited<ReturnType<typeof createFuzzer>>;

/** The same ones for the same seed. */
function* connections(): Generator<Connection, never> {
  for (let batch = 0; ; batch += 1) {
    yield* fc.sample(connection, { seed: seed + batch * 65_537, numRuns: 100 });
  }
}

export async function createFuzzer(port: number) {
  const known = await know(`http://127.0.0.1:${port}`);
  const posts = known['posts'] ?? [];
  const source = connections();
  const statuses = new Map<string, number>();
  const state = { requests: 0 };

  /** What is removed is the last record. */
  const fill = (request: FuzzRequest, choice: number): FuzzRequest => {
    const removes = request.method === 'DELETE';
    const filled = JSON.stringify(request).replaceAll(/<(\w+)>/g, (all, name: string) => {
      const items = known[name];
      return items?.at(removes ? -1 : choice % items.length) ?? all;
    });
    if (removes && posts.length > 1) posts.pop();
    return JSON.parse(filled) as FuzzRequest;
  };
  /** The requests of one connection, and whether the last is one for a WebSocket. */
  const makeMany = ({ requests, cut }: Connection) => {
    const first = requests.findIndex(({ request }) => request.kind === 'messages');
    // Nothing is HTTP after an upgrade.
    const sent = requests.slice(0, first === -1 ? requests.length : first + 1);
    state.requests += sent.length;
    const pieces = sent.map(({ request, choice }) => toBytes(fill(request, choice), choice));
    const bytes = Buffer.concat(pieces);
    const at = (cut?.at ?? 0) % bytes.length;
    const { added, removed } = cut ?? { added: [], removed: 0 };
    const rest = bytes.subarray(Math.max(0, at + removed));
    const whole = Buffer.concat([bytes.subarray(0, at), Buffer.from(added), rest]);
    return [whole, first !== -1] as const;
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
    while (state.requests < end) await send(...makeMany(source.next().value));
  };

  return {
    /** Each good request once, and as it is: it must succeed. */
    async sendSeeds() {
      for (const { status, request } of seeds) {
        const [bytes, upgrades] = makeMany({ requests: [{ request, choice: 1 }], cut: undefined });
        const response = await send(bytes, upgrades);
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
export async function assertIntact(url: string): Promise<void> {
  for (const path of ['/posts', '/api/todos', '/api/articles']) {
    assert.ok(Array.isArray(await (await fetch(url + path)).json()), path);
  }
  await (await fetch(`${url}/api/multiparts`)).formData();
}

/** A request, and after an upgrade its frames, as bytes. */
function toBytes({ method, target, headers, kind, body }: FuzzRequest, choice: number): Buffer {
  const content = kind === 'messages' ? Buffer.alloc(0) : toBodyBytes(kind, body);
  // Most texts should come through as one line; bytes are broken elsewhere.
  const lines = [
    `${method} ${target.replaceAll(/[\r\n ]/g, '%20')} HTTP/1.1`,
    'Host: fuzz.example',
  ];
  for (const header of headers) {
    const line = Array.isArray(header) ? header.map(toText).join(': ') : toText(header);
    lines.push(line.replaceAll(/[\r\n\0]/g, ' '));
  }
  const chunked = content.length > 0 && choice % 4 === 0;
  if (chunked) lines.push('Transfer-Encoding: chunked');
  else if (body !== undefined && kind !== 'messages')
    lines.push(`Content-Length: ${content.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const frames = kind === 'messages' ? [body].flat().map((each) => toFrame(each, choice)) : [];
  if (kind === 'messages') frames.push(closeFrame);
  return Buffer.concat([head, chunked ? toChunks(content, choice) : content, ...frames]);
}

function toBodyBytes(kind: FuzzRequest['kind'], body: unknown): Buffer {
  if (kind === 'json') return Buffer.from(toText(body));
  const { boundary, parts = [] } = body as Form;
  const texts = parts.map(
    (part) => `--${toText(boundary)}\r\n${toText(part?.head)}\r\n\r\n${toText(part?.content)}\r\n`,
  );
  return Buffer.from(`${texts.join('')}--${toText(boundary)}--\r\n`);
}

/** Whatever a change has made of it. */
interface Form {
  readonly boundary?: unknown;
  readonly parts?: readonly ({ readonly head?: unknown; readonly content?: unknown } | null)[];
}

function toChunks(body: Buffer, choice: number): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + 1 + ((choice + at) % body.length));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    at += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}

const textFrame = 0x81;
/** RFC 6455 §5.5.1 with status 1000, under a mask of zeros. */
const closeFrame = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]);

/** A masked frame (RFC 6455 §5.2); now and then of an odd kind. The mask of zeros is a legal one. */
function toFrame(message: unknown, choice: number): Buffer {
  const payload = Buffer.from(toText(message));
  const kind = choice % 30 === 0 ? (choice / 30) % 256 : textFrame;
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
