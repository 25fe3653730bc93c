/** Requests with an `Idempotency-Key`, and what is seen of their responses. */

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: string | Buffer;
  readonly type?: string;
}

export type SentHeaders = Readonly<Record<string, string>>;

export const json = 'application/json';
export const patch = 'application/json-patch+json';
export const merge = 'application/merge-patch+json';

export const send = (url: string, { method, path, body, type }: Sent, headers: SentHeaders = {}) =>
  fetch(`${url}${path}`, {
    method,
    headers: { ...(type !== undefined && { 'Content-Type': type }), ...headers },
    ...(body !== undefined && { body }),
  });

export const under = (key: string, more: SentHeaders = {}): SentHeaders => ({
  'Idempotency-Key': key,
  ...more,
});

/** What a client sees of a response, without what differs by time and request. */
export async function seen(response: Response): Promise<readonly unknown[]> {
  const { status, headers } = response;
  const location = headers.get('location');
  return [status, location, headers.get('idempotency-replayed'), await response.text()];
}

export const codeOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { readonly code: unknown }).code;
