/**
 * A trie of path segments: static before parameter before wildcard. Only the most specific path is
 * used: if it lacks the method, the result says so, and is never the match of another path.
 *
 * Patterns: `/posts`, `/posts/{id}`, `/graphql-ui/*` (one or more segments, which may be empty).
 */

export type Params = Readonly<Record<string, string>>;

export interface RouteOf<E> {
  readonly method: string;
  readonly path: string;
  readonly endpoint: E;
}

/** What the router says of a method and a path. `malformed`: the path has an invalid escape. */
export type Found<E> =
  | { readonly kind: 'match'; readonly endpoint: E; readonly params: Params }
  | { readonly kind: 'method-not-allowed'; readonly allow: string }
  | { readonly kind: 'not-found' | 'malformed' };

export type Find<E> = (method: string, path: string) => Found<E>;

class Node<E> {
  readonly children = new Map<string, Node<E>>();
  parameter: { readonly name: string; readonly node: Node<E> } | undefined;
  wildcard: Node<E> | undefined;
  /** The endpoints of the path that ends here. */
  readonly methods = new Map<string, E>();
  allow = '';
}

/** Names of parameters come from routes, never from requests, so that a plain object is safe. */
const noParams: Params = Object.freeze({});

interface Match<E> {
  readonly node: Node<E>;
  readonly params: Params;
}

/** The returned function takes a percent-encoded path. HEAD matches what GET matches (R9). */
export function createRouter<E>(routes: readonly RouteOf<E>[]): Find<E> {
  const root = new Node<E>();
  for (const route of routes) insert(root, route);
  return (method, path) => {
    // An invalid escape is refused wherever it stands.
    if (path.includes('%') && !isDecodable(path)) return { kind: 'malformed' };
    const found = walk(root, path, path.indexOf('/') + 1);
    if (found === undefined) return { kind: 'not-found' };
    const { node, params } = found;
    const endpoint = node.methods.get(method === 'HEAD' ? 'GET' : method);
    if (endpoint === undefined) return { kind: 'method-not-allowed', allow: node.allow };
    return { kind: 'match', endpoint, params };
  };
}

function insert<E>(root: Node<E>, { method, path, endpoint }: RouteOf<E>): void {
  let node = root;
  for (const segment of path.split('/').slice(1)) {
    if (segment === '*') node = node.wildcard ??= new Node();
    else if (segment.startsWith('{')) {
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
  const { methods } = node;
  if (methods.has(method)) throw new Error(`Two routes ${method} ${path}.`);
  methods.set(method, endpoint);
  node.allow = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
}

/**
 * `at` is where a segment begins. Without an array of segments: `split` takes three times as long
 * for a text that is new. The depth of the recursion is bounded by the longest route.
 */
function walk<E>(node: Node<E>, path: string, at: number): Match<E> | undefined {
  if (at > path.length) return node.methods.size > 0 ? { node, params: noParams } : undefined;
  const slash = path.indexOf('/', at);
  const end = slash === -1 ? path.length : slash;
  const text = path.slice(at, end);
  // Segments are decoded one by one, so that `%2F` does not become a separator.
  const segment = text.includes('%') ? decodeURIComponent(text) : text;
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
      return { node: rest.node, params };
    }
  }
  // 3. wildcard
  if (node.wildcard === undefined) return undefined;
  const rest = path.slice(at).split('/').map(decodeURIComponent);
  // An escaped slash cannot be told from a real one after decoding, so it is not matched.
  if (rest.some((one) => one.includes('/'))) return undefined;
  return { node: node.wildcard, params: { '*': rest.join('/') } };
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
