/** How a file that a client sends comes into the store: the same by REST and GraphQL (R19). */

import type { ByteSource } from '../byte-source.ts';
import type { Upload, WrittenFile } from '../store/uploads.ts';
import { createFileName, toFileName } from './file-names.ts';

/** What a part says of itself. */
export interface FileDescription {
  readonly name: string;
  readonly fileName: string | undefined;
  /** `type/subtype` in lower case. */
  readonly contentType: string;
  readonly charset: string | undefined;
}

export interface ReceivedFile {
  /** What the store needs to commit the file. */
  readonly written: WrittenFile;
  /**
   * The six values of Spec §4.1 rule 4, for the log (R19): the name of the part; the client's file
   * name as far as it counts (R18), empty where it has none; the name of the file in the folder of
   * the store; media type; charset, `utf-8` where the part names none (RFC 7578 §4.5); bytes.
   */
  readonly facts: Readonly<Record<string, string | number>>;
}

/**
 * Writes `content` under the naming rules of Spec §4.4. The file is visible once it is
 * committed: `upload.commit([received.written])`. Throws `invalid_multipart` for a bad name, and
 * what `Upload.write` throws.
 */
export async function receiveFile(
  upload: Upload,
  file: FileDescription & { readonly content: ByteSource },
  createUuid: () => string,
): Promise<ReceivedFile> {
  const { name, contentType, charset = 'utf-8', content } = file;
  const fileName = toFileName(file.fileName);
  const written = await upload.write(fileName ?? createFileName(contentType, createUuid), content);
  const { temporaryName, size } = written;
  const facts = { name, fileName: fileName ?? '', temporaryName, contentType, charset, size };
  return { written, facts };
}
