/** The preference `return` of a request (RFC 7240 §4.2). */

import { listMembers } from './list-header.ts';
import type { HttpRequest, HttpResponse } from './message.ts';
import { token } from './media-type.ts';

/** A name with its value, which may be quoted; parameters may follow. */
const preference = new RegExp(
  `^[ \\t]*(${token})(?:[ \\t]*=[ \\t]*(?:(${token})|"((?:[^"\\\\]|\\\\.)*)"))?[ \\t]*(?:;|$)`,
);

/**
 * True if the client prefers a representation of what it has stored. Of several preferences
 * `return` the first one counts (§2); other preferences, and what is malformed, are ignored.
 */
export function prefersRepresentation(request: Pick<HttpRequest, 'header'>): boolean {
  const list = request.header('prefer');
  if (list === undefined) return false;
  for (const text of listMembers(list)) {
    const [, name, plain, quoted = ''] = preference.exec(text) ?? [];
    if (name?.toLowerCase() !== 'return') continue;
    return (plain ?? quoted.replaceAll(/\\(.)/g, '$1')) === 'representation';
  }
  return false;
}

/** Adds to the response that the preference was followed. */
export function withPreferenceApplied(response: HttpResponse): HttpResponse {
  const applied = ['Preference-Applied', 'return=representation', 'Vary', 'Prefer'];
  return { ...response, headers: [...response.headers, ...applied] };
}
