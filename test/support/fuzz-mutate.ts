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
import type { FuzzBody, FuzzPart, FuzzRequest } from './fuzz-request.js';

/** A text changed in one place. */
function mutateText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  const end = Math.min(text.length, at + random.below(12));
  switch (random.below(7)) {
    case 0:
      return random.pick(oddTexts);
    case 1:
      return text.slice(0, at) + random.pick(oddTexts) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(end);
    case 3:
      return text.slice(0, end) + text.slice(at);
    case 4:
      return `${text.slice(0, at)} ${random.pick(graphqlTokens)} ${text.slice(at)}`;
    case 5:
      return text.slice(0, at) + String.fromCharCode(random.below(0x300)) + text.slice(at + 1);
    default:
      return text.split(' ').toSpliced(random.below(8), 1, random.pick(graphqlTokens)).join(' ');
  }
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
  switch (random.below(8)) {
    case 0:
      return Object.fromEntries(others);
    case 1:
      return Object.fromEntries([...members, [random.pick(oddTexts), random.pick(oddValues)]]);
    case 2:
      return Object.fromEntries([...others, [mutateText(name, random), member]]);
    default:
      return Object.fromEntries([...others, [name, mutateJson(member, random)]]);
  }
}

function mutateList(list: readonly unknown[], random: Random): unknown {
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
  switch (random.below(7)) {
    case 0:
      return parts.toSpliced(at, 1);
    case 1:
      return [...parts, part];
    case 2:
      return parts.toReversed();
    case 3:
      return replace({ head: random.pick(oddPartHeads) });
    case 4:
      return replace({ head: mutateText(part.head, random) });
    case 5:
      return replace({
        content: `${part.content}\r\n--fuzz-frontier${random.pick(['', '--', ' '])}`,
      });
    default:
      return replace({ content: mutateText(part.content, random) });
  }
}

function mutateBody(body: FuzzBody, random: Random): FuzzBody {
  switch (body.kind) {
    case 'none':
      return { kind: 'json', value: random.pick(oddValues) };
    case 'json':
      return { kind: 'json', value: mutateJson(body.value, random) };
    case 'form':
      if (random.oneIn(10)) return { ...body, boundary: mutateText(body.boundary, random) };
      return { ...body, parts: mutateParts(body.parts, random) };
    default:
      return body;
  }
}

function mutateHeaders(headers: FuzzRequest['headers'], random: Random): FuzzRequest['headers'] {
  const [name, value] = headers.length === 0 ? ['Accept', '*/*'] : random.pick(headers);
  const others = headers.filter(([other]) => other !== name);
  switch (random.below(5)) {
    case 0:
      return others;
    case 1:
      return [...headers, [name, value]];
    case 2:
      return [...others, [name, toHeaderText(mutateText(value, random))]];
    default:
      return [...headers, [random.pick(oddHeaders), random.pick(oddHeaderValues)]];
  }
}

/** Most texts should come through as one header line; bytes are broken elsewhere. */
function toHeaderText(text: string): string {
  return text.replaceAll(/[\r\n\0]/g, ' ');
}

function mutateTarget(target: string, random: Random): string {
  const segments = target.split('/');
  const at = 1 + random.below(segments.length);
  switch (random.below(6)) {
    case 0:
      return segments.toSpliced(at, 1).join('/');
    case 1:
      return segments
        .toSpliced(at, 0, random.pick(['', '.', '..', '%2e%2e', '%2F', '0']))
        .join('/');
    case 2:
      return `${target}${random.pick(['/', '?', '?a=%zz', '#x', '%00', ';a'])}`;
    case 3:
      return random.pick([`//evil.example${target}`, `http://other.example${target}`, '*', '/']);
    default:
      return mutateText(target, random).replaceAll(/[\r\n ]/g, '%20');
  }
}

/** One change, at any level of the request. */
export function mutate(request: FuzzRequest, random: Random): FuzzRequest {
  const { messages } = request;
  if (messages !== undefined && !random.oneIn(4)) {
    return { ...request, messages: mutateList(messages, random) as readonly unknown[] };
  }
  switch (random.below(10)) {
    case 0:
      return { ...request, method: random.pick(methods) };
    case 1:
    case 2:
      return { ...request, target: mutateTarget(request.target, random) };
    case 3:
    case 4:
      return { ...request, headers: mutateHeaders(request.headers, random) };
    default:
      return { ...request, body: mutateBody(request.body, random) };
  }
}

/** Bytes changed without regard to what they mean. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length);
  const end = Math.min(bytes.length, at + random.below(40));
  switch (random.below(5)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([
        bytes.subarray(0, at),
        random.bytes(random.below(40)),
        bytes.subarray(at),
      ]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    default: {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8));
      return flipped;
    }
  }
}
