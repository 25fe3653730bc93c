/** Makes bad requests of good ones, each near enough to the good one to come far. */

import type { FuzzBody, FuzzPart, FuzzRequest } from './fuzz-seeds.js';

export type Random = ReturnType<typeof createRandom>;

/**
 * Chance that can be had again: the same seed gives the same row of numbers. A congruential walk
 * whose steps are stirred well: enough for choosing, useless for secrets.
 */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let value = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
    return (value ^ (value >>> 16)) >>> 0;
  };
  /** A whole number from 0 up to, and without, `end`. */
  const below = (end: number): number => Math.floor((next() / 2 ** 32) * end);
  return {
    below,
    /** True once in so many times. */
    oneIn: (times: number) => below(times) === 0,
    pick<T>(items: readonly T[]): T {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
    bytes: (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => below(256))),
  };
}

// Texts, values and headers that have broken programs.
const oddTexts = [
  ['', ' ', '\0', '-', '/', '/0', '/-', '/01', '/4294967296', '/tags/-', '~', '~2'],
  '__proto__ constructor toString ../../etc/passwd ..%2f..%2fetc%2fpasswd %00 %zz'.split(' '),
  ['\ud800', '\u2028', 'é'.repeat(200), 'x'.repeat(5_000)],
  ['"><script>', "' OR 1=1 --", '${7*7}', '*/*;q=0', '0001-02-29T24:00:00Z'],
  'text/plain; charset="utf-16"',
  'application/json; charset=latin1',
  '019b8d5e-9c00-7000-8000-000000000101',
].flat();
const oddValues: readonly unknown[] = [
  [null, true, 0, -1, 1.5, 1e308, 2 ** 53, -(2 ** 31)],
  [[], {}, [[]], { a: { b: [{ c: null }] } }, ['__proto__']],
].flat();
const oddHeaders = [
  'Accept Accept-Encoding Authorization Connection Content-Encoding Content-Type'.split(' '),
  'Expect Host If-None-Match Origin Range Sec-Fetch-Site Upgrade __proto__'.split(' '),
  'X-HTTP-Method-Override',
].flat();
const oddHeaderValues = [
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
const methods = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE get X'.split(' ');
const graphqlTokens = [
  '{ } ( ) ... null # mutation subscription'.split(' '),
  ['@skip(if: true)', '@include(if: $x)', 'a: id', '$input: [Int!]', '"""block"""'],
  ['"\\u{110000}"', '9'.repeat(400), '__type(name: "Post") { name }'],
  'fragment P on Post { id }',
  'allPosts { author { posts { author { posts { id } } } } }',
  'createPost(createPostInput: {title: "a", content: "b"})',
].flat();

const named = 'Content-Disposition: form-data; name="a"';
const oddPartHeads = [
  ['', 'X: y', 'Content-Disposition: form-data', 'Content-Disposition: form-data;'],
  'Content-Disposition: form-data; name=a b',
  'Content-Disposition: attachment; name="a"',
  `${named}; filename="../../x"`,
  `${named}; filename="x\r\n y"`,
  `${named}; filename*=utf-8''%00%zz`,
  `${named}\r\nContent-Transfer-Encoding: base64`,
  `${named}\r\nContent-Type: text/plain; charset=nothing`,
].flat();

/** A text changed in one place. */
function mutateText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  const end = Math.min(text.length, at + random.below(12));
  const [before, behind] = [text.slice(0, at), text.slice(at)];
  return random.pick([
    () => random.pick(oddTexts),
    () => before + random.pick(oddTexts) + behind,
    () => before + text.slice(end),
    () => text.slice(0, end) + behind,
    () => `${before} ${random.pick(graphqlTokens)} ${behind}`,
    () => before + String.fromCharCode(random.below(0x300)) + behind.slice(1),
    () => text.split(' ').toSpliced(random.below(8), 1, random.pick(graphqlTokens)).join(' '),
  ])();
}

/** A JSON value changed somewhere within. */
function mutateJson(value: unknown, random: Random): unknown {
  if (random.oneIn(12)) return random.pick(oddValues);
  if (typeof value === 'string') return mutateText(value, random);
  if (typeof value === 'number') return random.pick([...oddValues, value + 1, -value, value * 1e9]);
  if (typeof value !== 'object' || value === null) return random.pick(oddValues);
  if (Array.isArray(value)) return mutateList(value, random);
  const members = Object.entries(value);
  const [name, member] = members.length === 0 ? ['a', 1] : random.pick(members);
  const others = members.filter(([other]) => other !== name);
  const change = (): [string, unknown][] => [...others, [name, mutateJson(member, random)]];
  const changed = random.pick<() => [string, unknown][]>([
    () => others,
    () => [...members, [random.pick(oddTexts), random.pick(oddValues)]],
    () => [...others, [mutateText(name, random), member]],
    ...Array.from({ length: 5 }, () => change),
  ])();
  return Object.fromEntries(changed);
}

function mutateList(list: readonly unknown[], random: Random): unknown[] {
  const at = random.below(list.length);
  if (random.oneIn(4)) return list.toSpliced(at, 1);
  if (random.oneIn(4)) return [...list, ...list];
  if (random.oneIn(30)) return Array.from({ length: 1_100 }, () => list[at]);
  return list.toSpliced(at, 1, mutateJson(list[at], random));
}

function mutateParts(parts: readonly FuzzPart[], random: Random): readonly FuzzPart[] {
  const at = random.below(parts.length);
  const part = parts[at] ?? { head: '', content: '' };
  const replace = (change: Partial<FuzzPart>): readonly FuzzPart[] =>
    parts.toSpliced(at, 1, { ...part, ...change });
  const delimiter = `\r\n--fuzz-frontier${random.pick(['', '--', ' '])}`;
  return random.pick([
    () => parts.toSpliced(at, 1),
    () => [...parts, part],
    () => parts.toReversed(),
    () => replace({ head: random.pick(oddPartHeads) }),
    () => replace({ head: mutateText(part.head, random) }),
    () => replace({ content: part.content + delimiter }),
    () => replace({ content: mutateText(part.content, random) }),
  ])();
}

function mutateBody(body: FuzzBody, random: Random): FuzzBody {
  if (body.kind === 'none') return { kind: 'json', value: random.pick(oddValues) };
  if (body.kind === 'json') return { kind: 'json', value: mutateJson(body.value, random) };
  if (random.oneIn(10)) return { ...body, boundary: mutateText(body.boundary, random) };
  return { ...body, parts: mutateParts(body.parts, random) };
}

function mutateHeaders(headers: FuzzRequest['headers'], random: Random): FuzzRequest['headers'] {
  const [name, value] = headers.length === 0 ? ['Accept', '*/*'] : random.pick(headers);
  const others = headers.filter(([other]) => other !== name);
  const add = (): FuzzRequest['headers'] => [
    ...headers,
    [random.pick(oddHeaders), random.pick(oddHeaderValues)],
  ];
  return random.pick<() => FuzzRequest['headers']>([
    () => others,
    () => [...headers, [name, value]],
    // Most texts should come through as one header line; bytes are broken elsewhere.
    () => [...others, [name, mutateText(value, random).replaceAll(/[\r\n\0]/g, ' ')]],
    add,
    add,
  ])();
}

function mutateTarget(target: string, random: Random): string {
  const segments = target.split('/');
  const at = 1 + random.below(segments.length);
  const odd = ['', '.', '..', '%2e%2e', '%2F', '0'];
  const change = (): string => mutateText(target, random).replaceAll(/[\r\n ]/g, '%20');
  return random.pick([
    () => segments.toSpliced(at, 1).join('/'),
    () => segments.toSpliced(at, 0, random.pick(odd)).join('/'),
    () => `${target}${random.pick(['/', '?', '?a=%zz', '#x', '%00', ';a'])}`,
    () => random.pick([`//evil.example${target}`, `http://other.example${target}`, '*', '/']),
    change,
    change,
  ])();
}

/** One change, at any level of the request. */
export function mutate(request: FuzzRequest, random: Random): FuzzRequest {
  const { target, headers, body, messages } = request;
  if (messages !== undefined && !random.oneIn(4)) {
    return { ...request, messages: mutateList(messages, random) };
  }
  const level = random.below(10);
  if (level === 0) return { ...request, method: random.pick(methods) };
  if (level < 3) return { ...request, target: mutateTarget(target, random) };
  if (level < 5) return { ...request, headers: mutateHeaders(headers, random) };
  return { ...request, body: mutateBody(body, random) };
}

/** Bytes changed without regard to what they mean. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length);
  const end = Math.min(bytes.length, at + random.below(40));
  const [before, behind] = [bytes.subarray(0, at), bytes.subarray(at)];
  const flipped = Buffer.from([(bytes[at] ?? 0) ^ (1 << random.below(8))]);
  return random.pick([
    () => before,
    () => Buffer.concat([before, random.bytes(random.below(40)), behind]),
    () => Buffer.concat([before, bytes.subarray(end)]),
    () => Buffer.concat([bytes.subarray(0, end), behind]),
    () => Buffer.concat([before, flipped, behind.subarray(1)]),
  ])();
}
