/** Makes bad requests of good ones, each near enough to the good one to come far. */

import * as fc from 'fast-check';
import { type FuzzRequest, type Seed, seeds } from './fuzz-seeds.ts';

// Texts and values that have broken programs, by where they are put.
const texts = [
  ['', ' ', '\0', '-', '/', '/0', '/-', '/01', '/4294967296', '/tags/-', '~', '~2'],
  '__proto__ constructor toString ../../etc/passwd ..%2f..%2fetc%2fpasswd %00 %zz'.split(' '),
  ['\ud800', '\u2028', 'é'.repeat(200), 'x'.repeat(5_000)],
  ['"><script>', "' OR 1=1 --", '${7*7}', '*/*;q=0', '0001-02-29T24:00:00Z'],
  'text/plain; charset="utf-16"',
  'application/json; charset=latin1',
  '019b8d5e-9c00-7000-8000-000000000101',
].flat();
const values: readonly unknown[] = [
  [null, true, 0, -1, 1.5, 1e308, 2 ** 53, -(2 ** 31)],
  [[], {}, [[]], { a: { b: [{ c: null }] } }, ['__proto__']],
].flat();
const graphqlTokens = [
  '{ } ( ) ... null # mutation subscription'.split(' '),
  ['@skip(if: true)', '@include(if: $x)', 'a: id', '$input: [Int!]', '"""block"""'],
  ['"\\u{110000}"', '9'.repeat(400), '__type(name: "Post") { name }'],
  'fragment P on Post { id }',
  'allPosts { author { posts { author { posts { id } } } } }',
  'createPost(createPostInput: {title: "a", content: "b"})',
].flat();
const named = 'Content-Disposition: form-data; name="a"';
const partHeads = [
  ['X: y', 'Content-Disposition: form-data', 'Content-Disposition: form-data;'],
  ['\r\n--fuzz-frontier', '\r\n--fuzz-frontier--', '\r\n--fuzz-frontier '],
  'Content-Disposition: form-data; name=a b',
  'Content-Disposition: attachment; name="a"',
  `${named}; filename="../../x"`,
  `${named}; filename="x\r\n y"`,
  `${named}; filename*=utf-8''%00%zz`,
  `${named}\r\nContent-Transfer-Encoding: base64`,
  `${named}\r\nContent-Type: text/plain; charset=nothing`,
].flat();
const headerNames = [
  'Accept Accept-Encoding Authorization Connection Content-Encoding Content-Type'.split(' '),
  'Expect Host If-None-Match Origin Range Sec-Fetch-Site Upgrade __proto__'.split(' '),
  'X-HTTP-Method-Override',
].flat();
const headerValues = [
  'a , * */* gzip Bearer close upgrade h2c 100-continue cross-site'.split(' '),
  'Bearer a.b.c',
  'https://evil.example',
  'multipart/form-data',
  'multipart/form-data; boundary=',
  'application/json-patch+json',
  'text/event-stream',
  'application/graphql-response+json;q=0.1',
  'W/"x", "y"',
  'x'.repeat(9_000),
  '\xff\xfe',
].flat();
const targets = '. .. %2e%2e %2F 0 * ? ?a=%zz #x ;a //evil.example http://other.example'.split(' ');
const methods = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE get X'.split(' ');

/** Evenly: fast-check's own numbers are often at the edges, which here means the same place. */
const digit = fc.constantFrom(...Array(1_000).keys());
const number = fc.tuple(digit, digit).map(([high, low]) => high * 1_000 + low);

const deep = fc.array(number, { minLength: 1, maxLength: 6 });
/** One change of a request: of one member of it, or of what the path leads to within. */
const changeOf = (
  member: keyof FuzzRequest,
  piece: fc.Arbitrary<unknown>,
  path: fc.Arbitrary<number[]> = deep,
) =>
  fc.record({
    member: fc.constant(member),
    path,
    how: number,
    at: number,
    length: fc.integer({ min: 1, max: 12 }),
    piece,
  });
const header = fc.tuple(fc.constantFrom(...headerNames), fc.constantFrom(...headerValues));
const headerText = fc.constantFrom(...headerValues, ...texts);
const anyPiece = [...texts, ...values, ...graphqlTokens, ...partHeads];
const change = fc.oneof(
  { weight: 1, arbitrary: changeOf('method', fc.constantFrom(...methods)) },
  { weight: 4, arbitrary: changeOf('target', fc.constantFrom(...targets, ...texts)) },
  // A list of lines, each a pair of a name and a value.
  { weight: 3, arbitrary: changeOf('headers', header, fc.tuple(number)) },
  { weight: 1, arbitrary: changeOf('headers', headerText, fc.tuple(number, fc.constant(1))) },
  { weight: 10, arbitrary: changeOf('body', fc.constantFrom(...anyPiece)) },
);
type Change = typeof change extends fc.Arbitrary<infer One> ? One : never;

/** Bytes put in, and taken away, without regard to what they mean. */
const cut = fc.record({
  at: number,
  removed: fc.constantFrom(-30, -3, 0, 0, 1, 1, 3, 30, Infinity),
  added: fc.uint8Array({ maxLength: 40 }),
});

const weighted: readonly Seed[] = seeds.flatMap((seed) => Array<Seed>(seed.weight).fill(seed));
const request = fc
  .tuple(fc.constantFrom(...weighted), fc.array(change, { maxLength: 3 }), number)
  .map(([seed, changes, choice]) => ({ request: changes.reduce(apply, seed.request), choice }));

/** What is sent over one connection. */
export const connection = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 6 }),
  cut: fc.oneof({ weight: 7, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: cut }),
});
export type Connection = typeof connection extends fc.Arbitrary<infer One> ? One : never;

function apply(given: FuzzRequest, step: Change): FuzzRequest {
  const { member, piece, path } = step;
  if (member === 'method') return { ...given, method: toText(piece) };
  return { ...given, [member]: changeWithin(given[member], step, path) };
}

function changeWithin(value: unknown, step: Change, path: readonly number[]): unknown {
  if (typeof value === 'string') return changeText(value, step);
  if (typeof value !== 'object' || value === null) return step.piece;
  const [place = 0, ...rest] = path;
  const members: [string, unknown][] = Object.entries(value);
  const at = place % Math.max(1, members.length);
  const [name, member] = members[at] ?? ['a', step.piece];
  const ways: (() => [string, unknown][])[] = [
    () => members.toSpliced(at, 1),
    () => [...members, [toText(step.piece), step.piece]],
    () => members.toSpliced(at, 1, [changeText(name, step), member]),
    () => [...members, ...members].toReversed(),
    () => Array.from({ length: step.at % 10 === 0 ? 1_100 : 2 }, () => [name, member]),
  ];
  const isHere = rest.length === 0 || members.length === 0;
  const changed = isHere
    ? ways[step.how % ways.length]?.()
    : members.toSpliced(at, 1, [name, changeWithin(member, step, rest)]);
  if (!Array.isArray(value)) return Object.fromEntries(changed ?? []);
  return changed?.map(([, each]) => each);
}

/** A text changed at one of its words and marks. */
function changeText(text: string, { how, at, length, piece }: Change): string {
  const tokens = text.split(/\b|(?=\W)/);
  const place = at % (tokens.length + 1);
  const put = (removed: number, ...added: readonly string[]): string =>
    tokens.toSpliced(place, removed, ...added).join('');
  const ways = [
    () => toText(piece),
    () => put(0, toText(piece)),
    () => put(1, ` ${toText(piece)} `),
    () => put(length),
    () => put(0, ...tokens.slice(place, place + length)),
    () => put(1, String.fromCharCode(how % 0x300)),
  ];
  return ways[how % ways.length]?.() ?? '';
}

/** Nothing is a body too. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
