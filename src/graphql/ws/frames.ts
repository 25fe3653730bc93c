/**
 * Frames of events, made once and written to many sockets. A socket of `ws` costs half as much
 * again when every message goes through `send()`, and an event that waits for a thousand slow
 * readers must be in memory once, not a thousand times (R30).
 */

import type { EventForm, SharedEvent } from '../subscriptions.ts';

/** An event up to this size is copied behind its prefix: one write is cheaper than two. */
const copiedBytesMax = 2_048;
/** Different prefixes (ids) of one event whose bytes are kept until it is delivered. */
const formsMax = 64;
/** No prefix is empty, so that this key cannot be one. */
const bodyKey = '';
const brace = Buffer.from('}');

/** What to write for the text message `prefix`, event, `}`. */
export function toFrame(event: SharedEvent, prefix: string): EventForm {
  const known = event.forms.get(prefix);
  if (known !== undefined) return known;
  const { json, forms } = event;
  const text = Buffer.from(prefix);
  const header = toHeader(text.length + json.length + brace.length);
  const frame =
    json.length > copiedBytesMax
      ? { head: Buffer.concat([header, text]), body: toBody(event) }
      : { head: Buffer.concat([header, text, json, brace]), body: undefined };
  if (forms.size < formsMax) forms.set(prefix, frame);
  return frame;
}

/** The event and `}`: one piece of memory for all sockets, whatever their ids are. */
function toBody({ json, forms }: SharedEvent): Buffer {
  const known = forms.get(bodyKey);
  if (known !== undefined) return known.head;
  const body = Buffer.concat([json, brace]);
  forms.set(bodyKey, { head: body, body: undefined });
  return body;
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
