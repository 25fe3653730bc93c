/** Multipart bodies as clients write them, right and wrong, for tests. */

export interface SentPart {
  /** Header lines without the last line end. */
  readonly head: string;
  readonly content: Buffer | string;
}

export const boundary = 'frontier-7MA4YWxk';

export const multipartType = `multipart/form-data; boundary=${boundary}`;

/** A part with a name and, where given, a file name and a media type. */
export function part(
  name: string,
  content: Buffer | string,
  more: { readonly fileName?: string; readonly type?: string } = {},
): SentPart {
  const { fileName, type } = more;
  const file = fileName === undefined ? '' : `; filename="${fileName}"`;
  const line = type === undefined ? '' : `\r\nContent-Type: ${type}`;
  return { head: `Content-Disposition: form-data; name="${name}"${file}${line}`, content };
}

export function multipartBody(parts: readonly SentPart[]): Buffer {
  const pieces = parts.map(({ head, content }) =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ]),
  );
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}
