/** Stores a file that a client sends, for REST and GraphQL alike (R19). */

import type { StoredFile } from '../store/file-index.ts';
import type { Upload } from '../store/files/uploads.ts';
import { createFileName, toFileName } from './file-names.ts';

/** The headers of a part. */
export interface FileDescription {
  readonly name: string;
  readonly fileName: string | undefined;
  /** `type/subtype` in lower case. */
  readonly contentType: string;
  readonly charset: string | undefined;
}

export interface ReceivedFile {
  /** The argument for `Upload.commit`. */
  readonly written: StoredFile;
  /**
   * The six values of Spec §4.1 rule 4, for the log (R19): part name; client's file name (R18),
   * empty if it has none; file name in the store's folder; media type; charset, `utf-8` if the part
   * names none (RFC 7578 §4.5); size in bytes.
   */
  readonly facts: Readonly<Record<string, string | number>>;
}

/**
 * Writes `content` under the naming rules of Spec §4.4. The file becomes visible with
 * `upload.commit([received.written])`. Throws `invalid_multipart` for an invalid name, and the
 * errors of `Upload.write`.
 */
export async function receiveFile(
  upload: Upload,
  file: FileDescription & { readonly content: AsyncIterable<readonly Buffer[]> },
  createUuid: () => string,
): Promise<ReceivedFile> {
  const { name, contentType, charset = 'utf-8', content } = file;
  const fileName = toFileName(file.fileName);
  const written = await upload.write(fileName ?? createFileName(contentType, createUuid), content);
  const { temporaryName, size } = written;
  const facts = { name, fileName: fileName ?? '', temporaryName, contentType, charset, size };
  return { written, facts };
}
