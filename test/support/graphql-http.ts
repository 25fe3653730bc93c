/** GraphQL requests by HTTP, and what came back. */

import type { TestServer } from './server.ts';

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

/** Of a GraphQL multipart request. */
export type Part = readonly [name: string, value: unknown, fileName?: string, type?: string];

export async function postParts(
  server: TestServer,
  parts: readonly Part[],
  headers: Record<string, string> = {},
): Promise<GraphqlResponse> {
  const body = new FormData();
  for (const [name, value, fileName, type = ''] of parts) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (fileName === undefined) body.append(name, text);
    else body.append(name, new Blob([text], { type }), fileName);
  }
  return read(await server.fetch('/graphql', { method: 'POST', body, headers }));
}

export async function get(
  server: TestServer,
  query: Record<string, string>,
  accept = '*/*',
): Promise<GraphqlResponse> {
  const search = new URLSearchParams(query).toString();
  return read(await server.fetch(`/graphql?${search}`, { headers: { Accept: accept } }));
}

async function read(response: Response): Promise<GraphqlResponse> {
  const { status, headers } = response;
  const text = await response.text();
  return { status, headers, type: headers.get('content-type'), body: text && JSON.parse(text) };
}

export function codes(body: unknown): readonly string[] {
  const { errors = [] } = body as { errors?: { extensions: { code: string } }[] };
  return errors.map((error) => error.extensions.code);
}
