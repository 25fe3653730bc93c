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

/** The six values of Spec §4.1 rule 4, and what the store needs to commit the file. */
export interface ReceivedFile {
  /** Name of the part. */
  readonly name: string;
  /** The client's file name as far as it counts (R18); empty where it has none. */
  readonly fileName: string;
  /** Name of the file in the folder of the store; made by the service. */
  readonly temporaryName: string;
  readonly contentType: string;
  /** `utf-8` where the part names none (RFC 7578 §4.5 has it as the usual one). */
  readonly charset: string;
  /** Bytes. */
  readonly size: number;
  readonly written: WrittenFile;
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
  return { name, fileName: fileName ?? '', temporaryName, contentType, charset, size, written };
}

/** The log's line of one upload (R19). */
export function toLogFacts(file: ReceivedFile): Record<string, string | number> {
  const { written: _written, ...facts } = file;
  return facts;
}
