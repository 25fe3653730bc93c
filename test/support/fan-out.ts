/** Comments made on several nodes while subscribers listen on all of them. */

import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { NodeProcess } from './node-process.js';

export interface FanOutOptions {
  readonly nodes: readonly NodeProcess[];
  readonly subscribers: number;
  readonly comments: number;
  readonly writers: number;
  /** Called when half of the comments are stored. */
  readonly disturb?: () => Promise<void>;
}

export interface FanOut {
  /** Ids in the stored order, and whether each one was acknowledged. */
  readonly stored: readonly string[];
  readonly acknowledged: readonly string[];
  /** What each subscriber heard, in its order. */
  readonly heard: readonly (readonly string[])[];
  /** From just before the request to the arrival at a subscriber, sorted. */
  readonly delays: readonly number[];
  readonly seconds: number;
}

interface Subscriber {
  readonly socket: WebSocket;
  readonly ids: string[];
}

export async function fanOut(options: FanOutOptions): Promise<FanOut> {
  const { nodes, comments, writers } = options;
  const delays: number[] = [];
  const start = performance.now();
  const subscribers = await Promise.all(
    Array.from({ length: options.subscribers }, (_, at) =>
      subscribe(nodes[at % nodes.length]?.url ?? '', (sent) => {
        delays.push(performance.now() - sent);
      }),
    ),
  );
  const post = await createPost(nodes[0]?.url ?? '');
  await warmUp(nodes, subscribers);

  const acknowledged: string[] = [];
  let asked = 0;
  let disturbed: Promise<void> | undefined;
  const write = async (writer: number): Promise<void> => {
    while (asked < comments) {
      asked += 1;
      const url = nodes[writer % nodes.length]?.url ?? '';
      const id = await addComment(url, post, `measured ${performance.now()}`);
      if (id === undefined) {
        asked -= 1; // refused, or the connection ended: another one in its place
        await pause(20);
      } else acknowledged.push(id);
      if (acknowledged.length * 2 >= comments) disturbed ??= options.disturb?.();
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, at) => write(at)));
  await disturbed;
  const stored = await listComments(nodes[0]?.url ?? '', post);
  const end = Date.now() + 30_000;
  while (subscribers.some(({ ids }) => ids.length < stored.length) && Date.now() < end) {
    await pause(20);
  }
  // Whatever would come a second time has the time to.
  await pause(200);
  for (const { socket } of subscribers) socket.terminate();
  return {
    stored,
    acknowledged,
    heard: subscribers.map(({ ids }) => ids),
    delays: delays.toSorted((a, b) => a - b),
    seconds: (performance.now() - start) / 1000,
  };
}

async function subscribe(url: string, onMeasured: (sent: number) => void): Promise<Subscriber> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const ids: string[] = [];
  const subscriber = { socket, ids, warm: false };
  await once(socket, 'open');
  const acknowledged = once(socket, 'message');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await acknowledged;
  socket.on('message', (data: Buffer) => {
    const { payload } = JSON.parse(data.toString()) as {
      payload?: { data?: { commentAdded?: { id: string; content: string } } };
    };
    const comment = payload?.data?.commentAdded;
    if (comment === undefined) return;
    const [kind, sent] = comment.content.split(' ');
    if (kind === 'warm') subscriber.warm = true;
    if (kind !== 'measured') return;
    ids.push(comment.id);
    onMeasured(Number(sent));
  });
  const query = 'subscription { commentAdded { id content } }';
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  return subscriber;
}

/** Until every subscriber has heard something: then each of them takes part. */
async function warmUp(
  nodes: readonly NodeProcess[],
  subscribers: readonly (Subscriber & { readonly warm?: boolean })[],
): Promise<void> {
  const url = nodes[0]?.url ?? '';
  const post = await createPost(url);
  while (subscribers.some(({ warm }) => warm !== true)) {
    await addComment(url, post, 'warm up');
    await pause(50);
  }
}

async function createPost(url: string): Promise<string> {
  const body = JSON.stringify({ title: 'Fan-out', content: 'To many.' });
  const answer = await fetch(`${url}/posts`, { method: 'POST', headers, body });
  return answer.headers.get('location') ?? '';
}

const headers = { 'Content-Type': 'application/json' };

/** Undefined where it was not acknowledged. */
async function addComment(url: string, post: string, content: string): Promise<string | undefined> {
  try {
    const body = JSON.stringify({ content });
    const answer = await fetch(`${url}${post}/comments`, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    return answer.headers.get('location')?.replace('/comments/', '');
  } catch {
    return undefined;
  }
}

async function listComments(url: string, post: string): Promise<readonly string[]> {
  for (;;) {
    const answer = await fetch(`${url}${post}/comments`);
    if (answer.ok) return ((await answer.json()) as { id: string }[]).map(({ id }) => id);
    await pause(50);
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}
