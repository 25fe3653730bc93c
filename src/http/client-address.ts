/**
 * Determines the address of a client (R34): that of the connection or, if that is a trusted proxy,
 * the one in `Forwarded` (RFC 7239) or `X-Forwarded-For`.
 */

import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';
import type { HttpRequest } from './message.ts';

/** Returns the address in canonical form; an IPv4-mapped IPv6 address becomes IPv4. */
type ClientAddress = (request: Pick<HttpRequest, 'remoteAddress' | 'header'>) => string;

/** `trustedProxies`: validated addresses, and networks such as `10.0.0.0/8`. */
function createIsTrusted(trustedProxies: readonly string[]): (address: string) => boolean {
  // The list makes an object of each address that it is asked for: a tenth of a small write.
  if (trustedProxies.length === 0) return () => false;
  const trusted = new BlockList();
  for (const text of trustedProxies) {
    const [address = '', bits] = text.split('/');
    trusted.addSubnet(address, Number(bits ?? (isIPv4(address) ? 32 : 128)), familyOf(address));
  }
  return (address) => trusted.check(address, familyOf(address));
}

export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const isTrusted = createIsTrusted(trustedProxies);
  return (request) => {
    const peer = toAddress(request.remoteAddress) ?? '';
    if (peer === '' || !isTrusted(peer)) return peer;
    const forwarded = request.header('forwarded');
    const listed = request.header('x-forwarded-for');
    // Proxies set one of the two headers and may pass on the other from the client.
    const named = [
      ...(forwarded === undefined
        ? []
        : [findClient(readForwarded(forwarded.slice(-lengthMax)), isTrusted)]),
      ...(listed === undefined ? [] : [findClient(listed.slice(-lengthMax).split(','), isTrusted)]),
    ];
    const [first, second = first] = named;
    return first !== undefined && first === second ? first : peer;
  };
}

/** More proxies than stand behind one another: what is further left was sent by a client. */
const nodesMax = 20;
/** The characters of so many nodes. What is cut in half at their start counts as malformed. */
const lengthMax = 2_048;

/**
 * Each proxy appends the address of its client, so that the rightmost address that is not trusted
 * is the last one that a trusted proxy has seen. A client can forge all to its left. Undefined if
 * there is no address; the leftmost of the last `nodesMax` if all are trusted.
 */
function findClient(
  nodes: readonly string[],
  isTrusted: (address: string) => boolean,
): string | undefined {
  let address: string | undefined;
  for (const node of nodes.slice(-nodesMax).toReversed()) {
    address = readNode(node.trim());
    if (address === undefined || !isTrusted(address)) return address;
  }
  return address;
}

/** RFC 7239 §6: an address with an optional port; not `unknown` or an obfuscated identifier. */
function readNode(node: string): string | undefined {
  const [, inBrackets, plain] = nodeForm.exec(node) ?? [];
  return toAddress(inBrackets ?? plain ?? node);
}

const nodeForm = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::(?:[0-9]{1,5}|_[0-9A-Za-z._-]+))?$/;

/**
 * Returns `for` of each element, from left to right, or empty text for an element without it. A
 * malformed header has no elements: an unclosed quote of a client must not hide what follows.
 */
function readForwarded(header: string): readonly string[] {
  const nodes: string[] = [];
  let node = '';
  for (const [, name = '', token, quoted = '', end] of header.matchAll(pairForm)) {
    if (name.toLowerCase() === 'for') node = token ?? quoted.replaceAll(/\\(.)/g, '$1');
    if (end === ';') continue;
    nodes.push(node);
    node = '';
    if (end === '') return nodes;
  }
  return [];
}

/** RFC 7239 §4, RFC 9110 §5.6: one pair and its separator. Matches in linear time. */
const pairForm =
  /[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z:[\]-]+)|"((?:[^"\\]|\\.)*)"))?[ \t]*([,;]|$)/gy;

/** Returns the canonical form, or undefined if `text` is not an address. */
function toAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  // As a socket of both families has it: a tenth of the time of the general way.
  if (text.startsWith('::ffff:') && isIPv4(text.slice(7))) return text.slice(7);
  if (!isIPv6(text)) return undefined;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  return /^::ffff:([0-9.]+)$/.exec(address)?.[1] ?? address;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv4(address) ? 'ipv4' : 'ipv6';
}
