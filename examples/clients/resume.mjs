// What both clients of GraphQL share: lines that are typed, and comments that go on where they were.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { server } from './login.mjs';

/** The newest post, with its comments. */
export const loading = '{ allPosts(first: 1) { id comments { id content } } }';
export const adding = 'mutation ($input: CommentInput!) { addComment(commentInput: $input) }';
const watching = `subscription ($after: String) {
  commentAdded(after: $after) { id content postId }
}`;

/**
 * Calls `show` for every comment after `last`, once each and in order. After a lost connection it goes on after the
 * comment that was shown last. If that was removed, `load` shows everything anew, and returns the last comment.
 */
export async function follow({ last, load, show }) {
  const url = `${server.replace('http', 'ws')}/graphql`;
  for (;;) {
    // Repeated here, because graphql-ws would repeat the first `after`.
    let silent;
    const socket = createClient({
      url,
      retryAttempts: 0,
      // A connection can go silent without an end: a ping that has no answer ends it.
      keepAlive: 10_000,
      on: {
        ping: (received) => {
          if (!received) silent = setTimeout(() => socket.terminate(), 5_000);
        },
        pong: (received) => received && clearTimeout(silent),
        closed: () => clearTimeout(silent),
      },
    });
    try {
      const events = socket.iterate({ query: watching, variables: { after: last?.id } });
      for await (const { data, errors } of events) {
        if (errors !== undefined) last = await load();
        else show((last = data.commentAdded));
      }
    } catch {
      // The connection is lost.
    }
    await pause(1_000 * Math.random());
  }
}

/** Calls `act` for each line that is typed. */
export function onLine(act) {
  createInterface({ input: process.stdin }).on('line', (line) => void act(line));
}
