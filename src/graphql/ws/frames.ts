/**
 * Frames of events, which are encoded once and written to many sockets. Sending every message
 * through `send()` of `ws` costs half as much again, and an event that is queued for a thousand
 * slow readers must be in memory once, not a thousand times (R30).
 */

import { copiedBytesMax, type EventForm, type SharedEvent } from '../events/shared-event.ts';

/** Forms kept for one event, each for a different prefix (operation id), until it is delivered. */
const formsMax = 64;
/** Ends each message, because the result is the last member of an object. */
export const brace: Buffer = Buffer.from('}');

/** Encodes the text message `prefix`, event, `}`; the result is shared by equal prefixes. */
export function toFrame({ json, forms }: SharedEvent, prefix: string): EventForm {
  const known = forms.get(prefix);
  if (known !== undefined) return known;
  const text = Buffer.from(prefix);
  const header = toHeader(text.length + json.length + brace.length);
  const frame =
    json.length > copiedBytesMax
      ? { head: Buffer.concat([header, text]), body: json }
      : { head: Buffer.concat([header, text, json, brace]), body: undefined };
  if (forms.size < formsMax) forms.set(prefix, frame);
  return frame;
}

/** RFC 6455 §5.2: FIN, opcode 1 (text), not masked, the length in its shortest form. */
function toHeader(length: number): Buffer {
  if (length < 126) return Buffer.from([0x81, length]);
  const short = length < 65_536;
  const header = Buffer.alloc(short ? 4 : 10);
  header[0] = 0x81;
  header[1] = short ? 126 : 127;
  if (short) header.writeUInt16BE(length, 2);
  else header.writeUIntBE(length, 4, 6);
  return header;
}
