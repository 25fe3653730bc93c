/** Comments made on several nodes while subscribers listen on all of them. */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { NodeProcess } from './program.ts';
import { connectReady } from './ws-clients.ts';

export interface FanOutOptions {
  readonly nodes: readonly NodeProcess[];
  readonly subscribers: number;
  readonly comments: number;
  readonly writers: number;
  /** Called when half of the comments are stored. Writers go on, more slowly, until it is over. */
  readonly disturb?: () => Promise<void>;
}

export type FanOut = Awaited<ReturnType<typeof fanOut>>;
export type Asked = Awaited<ReturnType<typeof addComment>>;
type Subscriber = Awaited<ReturnType<typeof subscribe>>;

export async function fanOut(options: FanOutOptions) {
  const { nodes } = options;
  const delays: number[] = [];
  const subscribers = await Promise.all(
    Array.from({ length: options.subscribers }, (_, at) =>
      subscribe(nodes[at % nodes.length]?.url ?? '', (delay) => delays.push(delay)),
    ),
  );
  const post = await createPost(nodes[0]?.url ?? '');
  await warmUp(nodes, subscribers);
  const { asked, disturbed } = await write(options, post);
  const comments = await listComments(nodes[0]?.url ?? '', post);
  const end = Date.now() + 30_000;
  const isMissing = ({ ids }: Subscriber): boolean => {
    const heard = new Set(ids);
    return comments.some(({ id }) => !heard.has(id));
  };
  while (subscribers.some(isMissing) && Date.now() < end) await pause(20);
  // Whatever would come a second time has the time to.
  await pause(200);
  for (const { socket } of subscribers) socket.terminate();
  return {
    /** Ids in the stored order, and those that were acknowledged. */
    stored: comments.map(({ id }) => id),
    /** Their texts in the stored order: each was asked for once. */
    texts: comments.map(({ content }) => content),
    acknowledged: asked.flatMap(({ id }) => (id === undefined ? [] : [id])),
    /** What each subscriber heard, in its order; the first is on the first node, and so on. */
    heard: subscribers.map(({ ids }) => ids),
    /** When it did, in milliseconds of `performance.now`. */
    arrivals: subscribers.map(({ arrivals }) => arrivals),
    asked,
    disturbed,
    /** From just before the request to the arrival at a subscriber, sorted. */
    delays: delays.toSorted((a, b) => a - b),
  };
}

/** Nothing acknowledged is lost, nothing is there twice, and all heard all of it in one order. */
export function assertWhole({ stored, texts, acknowledged, heard }: FanOut): void {
  assert.ok(stored.length > 200);
  const there = new Set(stored);
  assert.deepEqual(
    acknowledged.filter((id) => !there.has(id)),
    [],
    'acknowledged and lost',
  );
  assert.equal(new Set(texts).size, texts.length, 'stored twice');
  for (const [at, ids] of heard.entries()) assert.deepEqual(ids, stored, `ids ${at}`);
}

/** Until so many comments are acknowledged, and until the disturbance is over. */
async function write({ nodes, comments, writers, disturb }: FanOutOptions, post: string) {
  const asked: Asked[] = [];
  let acknowledged = 0;
  let disturbing: Promise<void> | undefined;
  let from = 0;
  let to = 0;
  const start = async (): Promise<void> => {
    from = performance.now();
    await disturb?.();
    to = performance.now();
  };
  const isUnderWay = (): boolean => disturbing !== undefined && to === 0;
  const writeOn = async (node: number): Promise<void> => {
    while (acknowledged < comments || isUnderWay()) {
      const response = await addComment(nodes[node]?.url ?? '', post, node);
      asked.push(response);
      if (response.id !== undefined) acknowledged += 1;
      if (acknowledged * 2 >= comments) disturbing ??= start();
      if (response.id === undefined || isUnderWay()) await pause(20);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, at) => writeOn(at % nodes.length)));
  await disturbing;
  return { asked, disturbed: /** When it began and ended. */ { from, to } };
}

async function subscribe(url: string, onDelay: (delay: number) => void) {
  const { socket } = await connectReady(Number(new URL(url).port));
  const ids: string[] = [];
  const arrivals: number[] = [];
  const subscriber = { socket, ids, arrivals, warm: false };
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
    const now = performance.now();
    arrivals.push(now);
    onDelay(now - Number(sent));
  });
  const query = 'subscription { commentAdded { id content } }';
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  return subscriber;
}

/** Until every subscriber has heard something: then each of them takes part. */
async function warmUp(
  nodes: readonly NodeProcess[],
  subscribers: readonly Subscriber[],
): Promise<void> {
  const url = nodes[0]?.url ?? '';
  const post = await createPost(url);
  while (subscribers.some(({ warm }) => !warm)) {
    await send(`${url}${post}/comments`, { content: 'warm up' });
    await pause(50);
  }
}

async function createPost(url: string): Promise<string> {
  const response = await send(`${url}/posts`, { title: 'Fan-out', content: 'To many.' });
  return response.headers.get('location') ?? '';
}

async function send(url: string, body: unknown): Promise<Response> {
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  await response.arrayBuffer();
  return response;
}

let unique = 0;

async function addComment(url: string, post: string, node: number) {
  const began = performance.now();
  unique += 1;
  const content = `measured ${began} ${unique}`;
  const response = await send(`${url}${post}/comments`, { content }).catch(() => undefined);
  return {
    node,
    /** Milliseconds of `performance.now`. */
    began,
    ended: performance.now(),
    /** Undefined where the connection ended before the response. */
    status: response?.status,
    /** Of the comment; undefined where it was not acknowledged. */
    id: response?.headers.get('location')?.replace('/comments/', ''),
    /** In seconds; 0 where the response has none. */
    retryAfter: Number(response?.headers.get('retry-after') ?? 0),
  };
}

async function listComments(
  url: string,
  post: string,
): Promise<readonly { readonly id: string; readonly content: string }[]> {
  for (;;) {
    const response = await fetch(`${url}${post}/comments`);
    if (response.ok) return (await response.json()) as { id: string; content: string }[];
    await pause(50);
  }
}
