/** Clients that mean well, beside an attack: what part of what they ask for is refused? */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { form } from './attacks.ts';
import { connectReady, subscribe } from './ws-clients.ts';

/** Of one kind of request. */
export interface Share {
  asked: number;
  /** Not answered as it should be: an error, a connection that was cut, or nothing for long. */
  refused: number;
  /** Of the last that got no response, or of a slow one another. */
  why?: string;
}

export interface Server {
  readonly port: number;
  /** Of a process that other work on the machine may keep from running. */
  readonly pid?: number | undefined;
}

const patienceMilliseconds = 30_000;
/** Where other work takes the machine. */
const patienceMillisecondsMax = 120_000;
const pieceMilliseconds = 250;

/**
 * Aborted when a server has worked for 30 s, on all its threads, and not responded: that long it
 * works for attackers who came before. Where it is not let run, its clients wait longer.
 */
export function patience({ pid }: Server): AbortSignal {
  const over = new AbortController();
  const [begun, worked] = [performance.now(), workedTime(pid)];
  const look = (): void => {
    const waited = performance.now() - begun;
    const own = Math.min(waited, workedTime(pid) - worked);
    if (own >= patienceMilliseconds || waited >= patienceMillisecondsMax) over.abort();
    else setTimeout(look, Math.max(1_000, patienceMilliseconds - own)).unref();
  };
  look();
  return over.signal;
}

/** The milliseconds of processors that a process has used; those of the clock if nobody tells. */
function workedTime(pid: number | undefined): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return performance.now();
  }
}

/** How fast a client sends. */
export interface Pace {
  readonly bytesPerSecond: number;
  /** It stands still for so long in the middle. */
  readonly stallMilliseconds?: number;
}
const usual: Pace = { bytesPerSecond: 4_000 };

/** `post`: the id of one that is there, and that nobody else writes to. */
export async function startHonest(server: Server, post: string) {
  const { port } = server;
  const names = ['uploads', 'slow posts', 'reads', 'queries', 'comments', 'events', 'logins'];
  const shares = new Map<string, Share>(names.map((name) => [name, { asked: 0, refused: 0 }]));
  const over = new AbortController();
  const repeat = (name: string, everyMilliseconds: number, ask: Ask): Promise<void> =>
    askRepeatedly(ask, { share: getShare(shares, name), over: over.signal, everyMilliseconds });
  const send = async (path: string, init: RequestInit = {}): Promise<Response> => {
    return fetch(`http://127.0.0.1:${port}${path}`, { signal: patience(server), ...init });
  };
  const sendJson = (path: string, body: unknown, headers = {}): Promise<Response> =>
    send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers },
    });

  const events = await connectReady(port);
  const query = `subscription { commentAdded(postId: "${post}") { content } }`;
  events.send(subscribe('s', query));
  await events.settle();
  const credentials = { username: 'user', password: 'password' };
  const upload = (): Promise<boolean> => sendSlowly(server, uploaded, usual);
  const running = [
    repeat('uploads', 0, upload),
    repeat('uploads', 0, upload),
    repeat('slow posts', 0, () => sendSlowly(server, posted, usual)),
    repeat('reads', 100, async (round) => {
      const path = round % 2 === 0 ? `/posts/${post}` : '/api/todos?limit=5';
      return isGood(await send(path), 200);
    }),
    repeat('queries', 100, async () => {
      const text = await (
        await sendJson('/graphql', { query: '{ allPosts(first: 3) { id } }' })
      ).text();
      return text.startsWith('{"data":{"allPosts"');
    }),
    repeat('comments', 250, async (round) => {
      const content = { content: `${round}` };
      return isGood(await sendJson(`/posts/${post}/comments`, content), 201);
    }),
    repeat('logins', 1_000, async (round) => {
      const headers = { 'X-Forwarded-For': `192.0.2.${round % 8}` };
      return isGood(await sendJson('/auth/login', credentials, headers), 200);
    }),
  ];

  return {
    /** Waits for what is under way. Resolves with the part that was refused, by kind. */
    async stop(): Promise<ReadonlyMap<string, Readonly<Share>>> {
      over.abort();
      await Promise.all(running);
      const stored = getShare(shares, 'comments');
      const due = stored.asked - stored.refused;
      const signal = patience(server);
      while (events.received.length < due && !signal.aborted) await delay(100);
      const missing = Math.max(0, due - events.received.length);
      shares.set('events', { asked: due, refused: missing });
      events.socket.terminate();
      return shares;
    },
  };
}

/** Whether it was answered as it should be. */
export type Ask = (round: number) => Promise<boolean>;

interface Repeated {
  readonly share: Share;
  readonly over: AbortSignal;
  readonly everyMilliseconds: number;
}

/** One after the other, until it is over. */
export async function askRepeatedly(
  ask: Ask,
  { share, over, everyMilliseconds }: Repeated,
): Promise<void> {
  for (let round = 0; !over.aborted; round += 1) {
    const isServed = await ask(round).catch((error: unknown) => {
      share.why = String((error as Error).cause ?? error);
      return false;
    });
    share.asked += 1;
    if (!isServed) share.refused += 1;
    await delay(everyMilliseconds);
  }
}

function getShare(shares: ReadonlyMap<string, Share>, name: string): Share {
  const share = shares.get(name);
  if (share === undefined) throw new Error(`Nobody asks for ${name}.`);
  return share;
}

export async function isGood(response: Response, status: number): Promise<boolean> {
  await response.arrayBuffer();
  return response.status === status;
}

export interface SlowRequest {
  readonly path: string;
  readonly type: string;
  readonly text: string;
}
const disposition = 'Content-Disposition: form-data; name="f"; filename="honest.txt"';
export const uploaded: SlowRequest = {
  path: '/api/multiparts/list',
  type: form,
  text: `--b\r\n${disposition}\r\n\r\n${'x'.repeat(60_000)}\r\n--b--\r\n`,
};
export const posted: SlowRequest = {
  path: '/posts',
  type: 'application/json',
  text: JSON.stringify({ title: 't', content: 'x'.repeat(14_000) }),
};

/** Of the time that sending takes at its pace: a client that needs more was not let run. */
const keptPace = 1.5;

/**
 * Sends a body, a piece each quarter of a second. Whether it was taken. True too if the machine,
 * which has other work, did not let this client keep its pace: then the service may refuse it.
 */
export async function sendSlowly(
  server: Server,
  { path, type, text }: SlowRequest,
  { bytesPerSecond, stallMilliseconds = 0 }: Pace,
): Promise<boolean> {
  const pieceBytes = (bytesPerSecond * pieceMilliseconds) / 1_000;
  const body = Buffer.from(text);
  const headers = { 'Content-Type': type, 'Content-Length': body.length };
  const { port } = server;
  const asking = request({ port, path, method: 'POST', agent: false, headers });
  const ended = new AbortController();
  const answered = new Promise<number>((resolve) => {
    asking.once('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.on('error', () => resolve(0)).once('close', () => resolve(0));
  });
  void answered.then(() => ended.abort());
  const begun = performance.now();
  let due = 0;
  for (let at = 0; at < body.length && !ended.signal.aborted; at += pieceBytes) {
    asking.write(body.subarray(at, at + pieceBytes));
    const isMiddle = at < body.length / 2 && at + pieceBytes >= body.length / 2;
    const pause = isMiddle ? pieceMilliseconds + stallMilliseconds : pieceMilliseconds;
    due += pause;
    await delay(pause);
  }
  const isLate = performance.now() - begun > keptPace * due;
  const status = await Promise.race([answered, once(patience(server), 'abort')]);
  asking.destroy();
  if (status === 200 || status === 201 || isLate) return true;
  throw new Error(typeof status === 'number' ? `status ${status}` : 'no response');
}
