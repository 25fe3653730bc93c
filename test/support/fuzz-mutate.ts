/** Makes bad requests of good ones, each near enough to the good one to come far. */

import {
  graphqlTokens,
  methods,
  oddHeaders,
  oddHeaderValues,
  oddPartHeads,
  oddTexts,
  oddValues,
} from './fuzz-odd.js';
import type { Random } from './fuzz-random.js';
import type { FuzzBody, FuzzPart, FuzzRequest } from './fuzz-seeds.js';

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
