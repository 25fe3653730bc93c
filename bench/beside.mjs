/** What honest clients ask for while one attack goes on, and what became of that. */

import { setTimeout as delay } from 'node:timers/promises';
import { askRepeatedly, isGood, patience, posted, sendSlowly, uploaded } from '#support/honest.js';
import { connectReady, subscribe } from '#support/ws-clients.js';

/**
 * Slow bodies; one that stands still for some seconds is honest too.
 *
 * @type {[import('#support/honest.js').SlowRequest, import('#support/honest.js').Pace][]}
 */
const slow = [
  [uploaded, { bytesPerSecond: 4_000 }],
  [uploaded, { bytesPerSecond: 8_000 }],
  [posted, { bytesPerSecond: 2_000 }],
  [posted, { bytesPerSecond: 4_000, stallMilliseconds: 4_500 }],
];
/** Of each. */
const slowAtOnce = 4;

export const besides = {
  async uploads(honest) {
    const all = slow.flatMap((one) => Array.from({ length: slowAtOnce }, () => one));
    const served = await Promise.all(
      all.map(([what, pace]) => repeatedly(honest, 0, () => sendSlowly(honest, what, pace))),
    );
    return {
      asked: served.reduce((sum, { asked }) => sum + asked, 0),
      refused: served.reduce((sum, { refused }) => sum + refused, 0),
      longest: Math.max(...served.map(({ longest }) => longest)),
    };
  },

  logins: (honest) =>
    repeatedly(honest, 1_000, async (round) => {
      const body = { username: 'user', password: 'password' };
      const headers = { 'X-Forwarded-For': `192.0.2.${round % 8}` };
      return isGood(await send(honest, ['POST', '/auth/login', body], headers), 200);
    }),

  changes: (honest) =>
    repeatedly(honest, 100, async (round) => {
      const body = [{ op: 'add', path: '/honest', value: round }];
      const headers = { 'Content-Type': 'application/json-patch+json' };
      return isGood(await send(honest, ['PATCH', '/api/articles/14', body], headers), 204);
    }),

  /** A comment, until its event comes. */
  async events(honest) {
    const client = await connectReady(honest.port);
    client.send(
      subscribe('s', `subscription { commentAdded(postId: "${honest.post}") { content } }`),
    );
    await client.settle();
    const served = await repeatedly(honest, 250, async (round) => {
      const path = `/posts/${honest.post}/comments`;
      const isStored = await isGood(await send(honest, ['POST', path, { content: 'c' }]), 201);
      const signal = patience(honest);
      while (client.received.length <= round && !signal.aborted) await delay(1);
      return isStored && client.received.length > round;
    });
    client.socket.terminate();
    return served;
  },
};

function send(honest, [method, path, body], headers = {}) {
  const init = {
    method,
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', ...headers },
    signal: patience(honest),
  };
  return fetch(`http://127.0.0.1:${honest.port}${path}`, init);
}

async function repeatedly({ over }, everyMilliseconds, ask) {
  const share = { asked: 0, refused: 0 };
  let longest = 0;
  const timed = async (round) => {
    const begun = performance.now();
    try {
      return await ask(round);
    } finally {
      longest = Math.max(longest, performance.now() - begun);
    }
  };
  await askRepeatedly(timed, { share, over, everyMilliseconds });
  return { ...share, longest };
}
