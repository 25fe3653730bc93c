/** GraphQL requests by HTTP, and what came back. */

import type { TestServer } from './server.js';

export interface GraphqlResponse {
  readonly status: number;
  readonly type: string | null;
  readonly headers: Headers;
  readonly body: unknown;
}

export async function post(
  server: TestServer,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<GraphqlResponse> {
  const response = await server.fetch('/graphql', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return read(response);
}

export async function get(
  server: TestServer,
  query: Record<string, string>,
  accept = '*/*',
): Promise<GraphqlResponse> {
  const search = new URLSearchParams(query).toString();
  return read(await server.fetch(`/graphql?${search}`, { headers: { Accept: accept } }));
}

export async function read(response: Response): Promise<GraphqlResponse> {
  const { status, headers } = response;
  const text = await response.text();
  return { status, headers, type: headers.get('content-type'), body: text && JSON.parse(text) };
}

export function codes(body: unknown): readonly string[] {
  const { errors = [] } = body as { errors?: { extensions: { code: string } }[] };
  return errors.map((error) => error.extensions.code);
}
