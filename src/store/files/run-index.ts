/** The in-memory index of one run's files. */

import {
  type FileIndex,
  type FileLimits,
  sizeOf,
  type StoredFile,
  tooManyFiles,
} from '../file-index.ts';

export function createRunIndex(limits: FileLimits): FileIndex {
  // By stored name. A replacement keeps the position (R2), as a Map does.
  const stored = new Map<string, StoredFile>();
  let bytes = 0;
  return {
    list(storedName) {
      if (storedName === undefined) return [...stored.values()];
      const file = stored.get(storedName);
      return file === undefined ? [] : [file];
    },
    commit(files) {
      const replaced = files.flatMap(({ storedName }) => stored.get(storedName) ?? []);
      const total = stored.size + files.length - replaced.length;
      const totalBytes = bytes + sizeOf(files) - sizeOf(replaced);
      if (total > limits.filesMax || totalBytes > limits.bytesMax) throw tooManyFiles(limits);
      bytes = totalBytes;
      for (const file of files) stored.set(file.storedName, file);
      return replaced;
    },
    remove({ storedName, temporaryName, size }) {
      if (stored.get(storedName)?.temporaryName !== temporaryName) return;
      bytes -= size;
      stored.delete(storedName);
    },
  };
}
