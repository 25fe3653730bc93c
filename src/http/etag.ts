/** Entity tags (RFC 9110 §8.8.3), for what a client may keep and ask after. */

import { createHash } from 'node:crypto';

/**
 * A weak tag for some content: the same one whether the content is sent packed or plain
 * (RFC 9110 §8.8.3.3).
 */
export function createEtag(content: string | Buffer): string {
  return `W/"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}

/**
 * True where `If-None-Match` names the tag or `*`, by weak comparison (RFC 9110 §13.1.2). Our tags
 * hold no comma, so that splitting the list is exact.
 */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = withoutWeakness(etag);
  return ifNoneMatch.split(',').some((tag) => withoutWeakness(tag.trim()) === opaque);
}

function withoutWeakness(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}
