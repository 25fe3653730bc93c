/** A client of event streams that reads as its test says. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { GraphqlEndpoint } from './graphql-endpoint.ts';
import { waitSeconds } from './raw-client.ts';
import { within } from './until.ts';

export type EventReader = Awaited<ReturnType<typeof askEvents>>;

/** Headers, and the method if it is another one. */
interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly [header: string]: string | undefined;
}

export async function askEvents(
  { port }: Pick<GraphqlEndpoint, 'port'>,
  query: string,
  { method = 'POST', ...more }: Asked = {},
) {
  const isGet = method === 'GET';
  const asking = request({
    port,
    path: `/graphql${isGet ? `?query=${encodeURIComponent(query)}` : ''}`,
    method,
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...more },
  });
  asking.on('error', () => undefined);
  asking.end(isGet ? undefined : JSON.stringify({ query }));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  response.setEncoding('utf8');
  const chunks = response[Symbol.asyncIterator]();
  let text = '';
  const next = async (): Promise<string | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end !== -1) {
        const event = text.slice(0, end);
        text = text.slice(end + 2);
        return event;
      }
      const chunk = within(chunks.next(), 'an event of the stream', waitSeconds);
      const { done, value } = (await chunk) as IteratorResult<string>;
      if (done === true) return undefined;
      text += value;
    }
  };
  return {
    response,
    leave: () => asking.destroy(),
    /** The next event or comment, without the empty line at its end; undefined after the last. */
    next,
    /** The next event. On a slow machine comments come between, which keep the stream alive. */
    async nextEvent(): Promise<string | undefined> {
      let event = await next();
      while (event === ':') event = await next();
      return event;
    },
  };
}

/** The event without its id, which is that of a comment. */
export const withoutId = (event: string | undefined): string | undefined =>
  event?.replace(/^id: [0-9a-f-]{36}\n/, '');
/** The event that tells of a result. */
export const nextEvent = (payload: unknown): string =>
  `event: next\ndata: ${JSON.stringify(payload)}`;
export const completeEvent = 'event: complete\ndata:';
