/** Every door through which a comment is added. */

import assert from 'node:assert/strict';
import type { Headers } from './drafts.ts';
import type { TestServer } from './server.ts';
import { connectReady } from './ws-clients.ts';

export interface Draft {
  readonly content: string;
  readonly name?: unknown;
}

/** What the client is told: the id of the comment, or a status or code. */
export type Told = { readonly id: string } | { readonly refusal: string };

export type Door = (
  node: TestServer,
  asked: { readonly post: string; readonly draft: Draft; readonly headers?: Headers },
) => Promise<Told>;

interface Result {
  readonly data?: { readonly addComment: string } | null;
  readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
}

function toTold({ data, errors }: Result): Told {
  const refusal = errors?.[0]?.extensions.code;
  return refusal === undefined ? { id: data?.addComment ?? '' } : { refusal };
}

const query = 'mutation ($input: CommentInput!) { addComment(commentInput: $input) }';
const toOperation = (post: string, draft: Draft) => ({
  query,
  variables: { input: { postId: post, ...draft } },
});

const overRest: Door = async (node, { post, draft, headers }) => {
  const response = await node.send('POST', `/posts/${post}/comments`, draft, headers);
  if (response.status !== 201) return { refusal: String(response.status) };
  return { id: response.headers.get('location')?.replace('/comments/', '') ?? '' };
};
const overGraphql: Door = async (node, { post, draft, headers }) => {
  const response = await node.send('POST', '/graphql', toOperation(post, draft), headers);
  return toTold((await response.json()) as Result);
};
const inBatch: Door = async (node, { post, draft, headers }) => {
  const batch = [{ query: '{ __typename }' }, toOperation(post, draft)];
  const response = await node.send('POST', '/graphql', batch, headers);
  const body = (await response.json()) as readonly Result[] | Result;
  return toTold((Array.isArray(body) ? body[1] : body) as Result);
};
const inForm: Door = async (node, { post, draft, headers = {} }) => {
  const body = new FormData();
  body.append('operations', JSON.stringify(toOperation(post, draft)));
  body.append('map', '{}');
  const response = await node.fetch('/graphql', { method: 'POST', headers, body });
  return toTold((await response.json()) as Result);
};
const overSocket =
  (protocol: string, type: string): Door =>
  async (node, { post, draft, headers = {} }) => {
    const client = await connectReady(node.port, { protocols: [protocol], headers });
    client.send({ id: '1', type, payload: toOperation(post, draft) });
    const { payload } = await client.next();
    await client.close();
    const { extensions } = payload as Partial<NonNullable<Result['errors']>[number]>;
    const errors = extensions === undefined ? payload : [payload];
    assert.ok(typeof payload === 'object');
    return toTold((Array.isArray(errors) ? { errors } : payload) as Result);
  };

export const doors: Readonly<Record<string, Door>> = {
  REST: overRest,
  GraphQL: overGraphql,
  'a batch': inBatch,
  'a form': inForm,
  'a socket': overSocket('graphql-transport-ws', 'subscribe'),
  'a socket of the older protocol': overSocket('graphql-ws', 'start'),
};
