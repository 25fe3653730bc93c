/**
 * A trie of path segments: static before parameter before wildcard. Only the most specific path is
 * used: if it lacks the method, the result is 405, never the match of another path.
 *
 * Patterns: `/posts`, `/posts/{id}`, `/graphql-ui/*` (one or more segments, which may be empty).
 */

import { AppError } from './errors.ts';

export type Params = Readonly<Record<string, string>>;

export interface RouteOf<E> {
  readonly method: string;
  readonly path: string;
  readonly endpoint: E;
}

interface Leaf<E> {
  readonly methods: Map<string, E>;
  allow: string;
}

class Node<E> {
  readonly children = new Map<string, Node<E>>();
  parameter: { readonly name: string; readonly node: Node<E> } | undefined;
  wildcard: Leaf<E> | undefined;
  leaf: Leaf<E> | undefined;
}

/** Names of parameters come from routes, never from requests, so that a plain object is safe. */
const noParams: Params = Object.freeze({});

interface Match<E> {
  readonly leaf: Leaf<E>;
  readonly params: Params;
}

export function createRouter<E>(routes: readonly RouteOf<E>[]) {
  const root = new Node<E>();
  for (const route of routes) insert(root, route);
  // Paths without parameters are looked up at once, without a walk.
  const fixed = new Map<string, Match<E>>();
  for (const { path } of routes) {
    const found = /[{*]/.test(path) ? undefined : walk(root, path, 1);
    if (found !== undefined) fixed.set(path, found);
  }

  const match = (path: string): Match<E> => {
    if (path.includes('%')) decode(path); // an invalid escape is refused wherever it stands
    const found = walk(root, path, path.indexOf('/') + 1);
    if (found === undefined) throw new AppError('not_found', 'There is nothing at this path.');
    return found;
  };

  /**
   * `path` is percent-encoded. Both throw `malformed_request` for an invalid percent-escape, and
   * `not_found` if no route matches.
   */
  return {
    /** HEAD matches what GET matches (R9). Throws `method_not_allowed` too. */
    find: (method: string, path: string): { readonly endpoint: E; readonly params: Params } => {
      const { leaf, params } = fixed.get(path) ?? match(path);
      const endpoint = leaf.methods.get(method === 'HEAD' ? 'GET' : method);
      if (endpoint !== undefined) return { endpoint, params };
      const { allow } = leaf;
      throw new AppError('method_not_allowed', `This resource has ${allow}.`, {
        headers: ['Allow', allow],
      });
    },
    /** Returns the methods of a path for OPTIONS (R9). */
    allowed: (path: string): string => (fixed.get(path) ?? match(path)).leaf.allow,
  };
}

function insert<E>(root: Node<E>, route: RouteOf<E>): void {
  let node = root;
  for (const segment of route.path.split('/').slice(1)) {
    if (segment === '*') {
      node.wildcard = withMethod(node.wildcard, route);
      return;
    }
    if (segment.startsWith('{')) {
      const name = segment.slice(1, -1);
      node.parameter ??= { name, node: new Node() };
      if (node.parameter.name !== name) throw new Error(`Two names for one parameter: ${name}.`);
      node = node.parameter.node;
    } else {
      const child = node.children.get(segment) ?? new Node<E>();
      node.children.set(segment, child);
      node = child;
    }
  }
  node.leaf = withMethod(node.leaf, route);
}

function withMethod<E>(leaf: Leaf<E> | undefined, route: RouteOf<E>): Leaf<E> {
  const grown = leaf ?? { methods: new Map<string, E>(), allow: '' };
  if (grown.methods.has(route.method)) throw new Error(`Two routes ${route.method} ${route.path}.`);
  grown.methods.set(route.method, route.endpoint);
  const methods = [...grown.methods.keys()];
  if (grown.methods.has('GET')) methods.push('HEAD');
  grown.allow = [...methods, 'OPTIONS'].join(', ');
  return grown;
}

/**
 * `at` is where a segment begins. Without an array of segments: `split` takes three times as long
 * for a text that is new. The depth of the recursion is bounded by the longest route.
 */
function walk<E>(node: Node<E>, path: string, at: number): Match<E> | undefined {
  if (at > path.length) return node.leaf && { leaf: node.leaf, params: noParams };
  const slash = path.indexOf('/', at);
  const end = slash === -1 ? path.length : slash;
  const text = path.slice(at, end);
  const segment = text.includes('%') ? decode(text) : text;
  // 1. static
  const next = node.children.get(segment);
  const found = next && walk(next, path, end + 1);
  if (found !== undefined) return found;
  // 2. parameter: never empty, so that a trailing slash is another path (R9)
  if (node.parameter !== undefined && segment !== '') {
    const rest = walk(node.parameter.node, path, end + 1);
    if (rest !== undefined) {
      const own: Record<string, string> = {};
      own[node.parameter.name] = segment; // a literal with this name takes twice the time
      const params = rest.params === noParams ? own : { ...rest.params, ...own };
      return { leaf: rest.leaf, params };
    }
  }
  // 3. wildcard
  return node.wildcard && takeRest(node.wildcard, path.slice(at).split('/').map(decode));
}

/** An escaped slash cannot be told from a real one after decoding, so it is not matched. */
function takeRest<E>(leaf: Leaf<E>, rest: readonly string[]): Match<E> | undefined {
  if (rest.some((segment) => segment.includes('/'))) return undefined;
  return { leaf, params: { '*': rest.join('/') } };
}

/** Segments are decoded one by one, so that `%2F` does not become a separator. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new AppError('malformed_request', 'The path holds a percent-escape that is not valid.');
  }
}
