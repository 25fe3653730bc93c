/** JSON to send. A short one is a string, which Node writes in one piece with the head. */

export type JsonBody = string | Buffer;

/** Longer texts become bytes once: encoding them for each response would cost more. */
const textLengthMax = 2_048;

export function toJsonBody(text: string): JsonBody {
  return text.length < textLengthMax ? text : Buffer.from(text);
}

export function toBytes(body: JsonBody): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : body;
}
