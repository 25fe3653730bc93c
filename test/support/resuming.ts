/** Clients that resume subscriptions, over each transport, and the comments that they hear of. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { TestServer } from './server.ts';
import { askEvents } from './sse-client.ts';
import { connectReady } from './ws-clients.ts';

export interface Told {
  readonly data?: { readonly commentAdded: { readonly id: string; readonly content: string } };
  readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
}

/** A subscription over one transport; the result says what comes next: a text, or a code. */
export type Follow = (
  t: TestContext,
  to: number | Connection,
  args: string,
) => Promise<() => Promise<string>>;
interface Connection {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
}
const toConnection = (to: number | Connection): Connection =>
  typeof to === 'number' ? { port: to, headers: {} } : to;

export const toQuery = (args: string): string =>
  `subscription { commentAdded${args && `(${args})`} { id content } }`;
export const toWord = ({ data, errors }: Told): string =>
  data?.commentAdded.content ?? String(errors?.[0]?.extensions.code);
export const after = (id: string | undefined, postId?: string): string =>
  `after: "${id}"${postId === undefined ? '' : `, postId: "${postId}"`}`;

export const overSocket = (protocol: string, type: string): Follow => {
  return async (t, to, args) => {
    const { port, headers } = toConnection(to);
    const client = await connectReady(port, { protocols: [protocol], headers });
    t.after(() => client.socket.terminate());
    client.send({ id: '1', type, payload: { query: toQuery(args) } });
    return async () => {
      const { payload } = await client.next();
      const { extensions } = payload as Partial<NonNullable<Told['errors']>[number]>;
      // The older protocol sends one error as an object.
      const errors = extensions === undefined ? payload : [payload];
      return toWord((Array.isArray(errors) ? { errors } : payload) as Told);
    };
  };
};
export const overEvents: Follow = async (t, to, args) => {
  const { port, headers } = toConnection(to);
  const reader = await askEvents({ port }, toQuery(args), headers);
  t.after(() => void reader.leave());
  assert.equal(await reader.next(), ':');
  return async () => toWord((await nextOf(reader)).told);
};
export const transports: readonly (readonly [string, Follow])[] = [
  ['graphql-transport-ws', overSocket('graphql-transport-ws', 'subscribe')],
  ['the older protocol', overSocket('graphql-ws', 'start')],
  ['an event stream', overEvents],
];

/** The next event of a stream that is a result, and its id. */
export async function nextOf(reader: Awaited<ReturnType<typeof askEvents>>) {
  for (;;) {
    const text = await reader.next();
    assert.notEqual(text, undefined);
    const [, id, data] = /^(?:id:(?: (.*))?\n)?event: next\ndata: (.*)$/.exec(text ?? '') ?? [];
    if (data !== undefined) return { id, told: JSON.parse(data) as Told };
  }
}

export async function addPost(server: TestServer, title = 'a'): Promise<string> {
  const response = await server.send('POST', '/posts', { title, content: 'b' });
  return response.headers.get('location')?.replace('/posts/', '') ?? '';
}
export async function comment(
  server: TestServer,
  postId: string,
  content: string,
): Promise<string> {
  const response = await server.send('POST', `/posts/${postId}/comments`, { content });
  assert.equal(response.status, 201);
  return response.headers.get('location')?.replace('/comments/', '') ?? '';
}
/** So many words of a subscriber. */
export async function read(next: () => Promise<string>, count: number): Promise<readonly string[]> {
  const words: string[] = [];
  while (words.length < count) words.push(await next());
  return words;
}
