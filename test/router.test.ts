import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createRouter, type RouteOf } from '../dist/router.js';
import { cases } from './support/long.ts';

function route(method: string, path: string): RouteOf<string> {
  return { method, path, endpoint: `${method} ${path}` };
}

/** The rules as they read, without a trie: patterns from the most to the least specific. */
function findNaively(routes: readonly RouteOf<string>[], method: string, path: string): unknown {
  const segments = path.split('/').slice(1).map(decodeURIComponent);
  const paths = [...new Set(routes.map((one) => one.path))].toSorted(bySpecificity);
  for (const pattern of paths) {
    const params = match(pattern.split('/').slice(1), segments);
    if (params === undefined) continue;
    const own = routes.filter((one) => one.path === pattern);
    const found = own.find((one) => one.method === (method === 'HEAD' ? 'GET' : method));
    if (found !== undefined) return { kind: 'match', endpoint: found.endpoint, params };
    const methods = own.map((one) => one.method);
    const head = methods.includes('GET') ? ['HEAD'] : [];
    const allow = [...methods, ...head, 'OPTIONS'].join(', ');
    return { kind: 'method-not-allowed', allow };
  }
  return { kind: 'not-found' };
}

/** Segment by segment: a name before a parameter before a wildcard. */
function bySpecificity(one: string, other: string): number {
  const rank = (path: string): string => path.replaceAll('*', '\uFFFF').replaceAll('{', '\uFFFE');
  return rank(one) < rank(other) ? -1 : 1;
}

function match(pattern: readonly string[], segments: readonly string[]) {
  const params: Record<string, string> = {};
  for (const [at, part] of pattern.entries()) {
    const segment = segments[at];
    if (segment === undefined) return undefined;
    if (part === '*') {
      const rest = segments.slice(at);
      if (rest.some((one) => one.includes('/'))) return undefined;
      return { ...params, '*': rest.join('/') };
    }
    if (part.startsWith('{')) {
      if (segment === '') return undefined;
      params[part.slice(1, -1)] = segment;
    } else if (part !== segment) return undefined;
  }
  return pattern.length === segments.length ? params : undefined;
}

const part = fc.constantFrom('a', 'b', '{x}');
const pattern = fc
  .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.boolean())
  // One parameter name a place, as the service's own routes have it.
  .map(([parts, wild]) => {
    const named = parts.map((one, at) => (one === '{x}' ? `{p${at}}` : one));
    return `/${[...named, ...(wild ? ['*'] : [])].join('/')}`;
  });
const method = fc.constantFrom('GET', 'POST', 'HEAD', 'DELETE');
const row = fc.tuple(fc.constantFrom('GET', 'POST', 'DELETE'), pattern);
const table = fc.uniqueArray(row, { selector: (one) => one.join(' '), maxLength: 12 });
const segment = fc.constantFrom(...'a b c  %61 %2F %2f a%2Fb .. %2e {p0} *'.split(' '));
const asked = fc
  .array(segment, { minLength: 1, maxLength: 6 })
  .map((segments) => `/${segments.join('/')}`);

test('it finds what the rules say, for any table and any path', () => {
  fc.assert(
    fc.property(table, method, asked, (rows, verb, path) => {
      const routes = rows.map(([one, at]) => route(one, at));
      const found = createRouter(routes)(verb, path);
      assert.deepEqual(found, findNaively(routes, verb, path));
    }),
    { numRuns: cases(2_000) },
  );
});

const routes = ['/hello', '/posts', '/posts/{id}', '/posts/{id}/comments', '/ui/*', '/posts/new'];
const find = createRouter(routes.map((path) => route('GET', path)));

test('a trailing slash, an empty segment and a dot segment are other paths (R9)', () => {
  const paths = '/hello/ //hello / /posts/ /posts//comments /x/../hello /./hello /Hello /hello.';
  for (const path of [...paths.split(' '), '/hello%00', '/hello%20', '/ui/..%2f..%2fetc', '*']) {
    assert.deepEqual(find('GET', path), { kind: 'not-found' }, path);
  }
});

test('names of Object.prototype are nothing special', () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    assert.equal(find('GET', `/${name}`).kind, 'not-found', name);
    assert.equal(find(name, '/hello').kind, 'method-not-allowed', name);
    const endpoint = 'GET /posts/{id}';
    const found = { kind: 'match', endpoint, params: { id: name } };
    assert.deepEqual(find('GET', `/posts/${name}`), found, name);
  }
});

test('a bad escape is malformed, wherever it stands', () => {
  for (const path of ['/%', '/hello/%4', '/%zz', '/posts/%ff', '/posts/%c0%af', '/ui/%ed%a0%80']) {
    assert.deepEqual(find('GET', path), { kind: 'malformed' }, path);
  }
});

test('a table that contradicts itself is refused', () => {
  assert.throws(() => createRouter([route('GET', '/a'), route('GET', '/a')]), /Two routes/);
  assert.throws(() => createRouter([route('GET', '/{a}'), route('GET', '/{b}/c')]), /Two names/);
});
