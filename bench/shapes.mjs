/** Attacks of one shape each, which `bench/attacks.mjs` runs alone (bench/README.md). */

import { setTimeout as delay } from 'node:timers/promises';
import { sized } from '#support/turn-attacks.js';

/**
 * `stored` before: `thousand` posts, `posts` and `comments` as many as are asked for. `env`: settings
 * of the server beside the defaults. `beside`: who asks for something beside the attack, and is not
 * to be refused.
 *
 * @typedef {{
 *   attack: import('#support/turn-attacks.js').Sized;
 *   stored?: 'articles' | 'thousand' | 'posts' | 'titles' | 'comments';
 *   env?: Record<string, string>;
 *   beside?: keyof typeof import('./beside.mjs').besides;
 * }} Shape
 */

/** All at once. */
const together =
  (...attacks) =>
  (target) =>
    Promise.all(attacks.map((attack) => attack(target)));

const chunked = ['a post', 'an upload', 'a query', 'unread'];
const chunks = (connections) =>
  together(...chunked.map((what) => sized[`chunks of a byte, ${what}`](connections / 4)));

/** Removes the post with most comments, a moment after the attack has begun. */
const removal = async ({ port, posts: [id = ''] }) => {
  await delay(500);
  // Where it is refused, nothing is to be measured.
  return fetch(`http://127.0.0.1:${port}/posts/${id}`, { method: 'DELETE' }).catch(() => undefined);
};

const articles = 'articles';
const members = { REQUIRE_AUTH: 'members' };
const proxied = { TRUSTED_PROXIES: '127.0.0.1' };
const waiting = sized['patches of 16 KiB that wait'];

/** @type {Record<string, Shape>} */
export const shapes = {
  none: { attack: () => () => undefined },
  'T1-escaped': {
    attack: sized['merge patches of a large article, names with escapes'],
    stored: articles,
  },
  'T1-plain': { attack: sized['merge patches of a large article, plain names'], stored: articles },
  'T1-json-patch': { attack: sized['JSON Patches of a large article'], stored: articles },
  'T1-post': { attack: sized['posts of names with escapes'] },
  'T1-nulls': { attack: sized['merge patches that remove what is not there'], stored: articles },
  'T1-numbers': { attack: sized['posts of long numbers'] },
  'T1-moves': { attack: sized['JSON Patches of a thousand moves'], stored: articles },
  'T1-all': { attack: sized['patches of all articles'], stored: articles },
  'T2-socket': {
    attack: () => sized['subscriptions of long variables on WebSockets'](1),
    beside: 'uploads',
  },
  'T2-streams': {
    attack: () => sized['event streams of long variables'](20),
    beside: 'uploads',
  },
  'T3-behind': { attack: () => sized['requests behind an event stream'](20), beside: 'uploads' },
  'T4-single': { attack: sized['queries that are long'], stored: 'thousand' },
  'T4-batch': { attack: sized['batches of one query'], stored: 'thousand' },
  'T4-members': { attack: sized['batches of one query'], stored: 'thousand', env: members },
  'T4-sockets': { attack: sized['queries on WebSockets'], stored: 'thousand', env: members },
  'T5-1000': { attack: () => waiting(1_000), stored: articles },
  'T5-4000': { attack: () => waiting(4_000), stored: articles },
  'T6-document': { attack: sized['documents of a page after nothing'], stored: 'posts' },
  'T6-batch': { attack: sized['batches of pages after nothing'], stored: 'posts' },
  'T6-get': { attack: sized['pages after nothing'], stored: 'posts' },
  'T7-idle': { attack: () => sized['requests behind an event stream'](8), beside: 'uploads' },
  'T8-chunks': { attack: () => chunks(60) },
  'T9-removal': {
    attack: (connections) =>
      together(
        removal,
        sized['posts of many comments, removed'](3),
        sized['pages after nothing'](connections - 4),
      ),
    stored: 'comments',
  },
  'T10-logins': {
    attack: () => sized['logins from sixty addresses'](60),
    env: proxied,
    beside: 'logins',
  },
  'T11-all': {
    attack: () => sized['patches of all articles'](1_300),
    stored: articles,
    beside: 'changes',
  },
  'T14-aliases': {
    attack: () =>
      together(sized['subscriptions of many aliases'](10), sized['comments for them'](1)),
    beside: 'events',
  },
  'D1-empty': { attack: sized['queries of lists without records'], stored: 'thousand' },
  'D2-different': {
    attack: () => sized['idle subscriptions to different posts'](11),
    beside: 'events',
  },
  'D3-pages': { attack: () => sized['long pages'](200), stored: 'thousand' },
  'D5-accept': { attack: () => sized['long Accept headers'](300) },
  'T15-titles': { attack: sized['titles in upper case'], stored: 'titles' },
  'T16-places': { attack: sized['uploads to many places'] },
};

/** Names of shapes; `all` for all. Throws if one is none. */
export function findShapes(names) {
  const all = Object.keys(shapes);
  const found = names === 'all' ? all : names.split(',');
  const unknown = found.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new Error(`No shape: ${unknown.join()}. All: ${all.join()}`);
  return found;
}
