/** The in-memory index of one run's files. A replaced file is removed after its last reader. */

import { type FileIndex, removableMax } from '../file-index.ts';
import { tooManyFiles, type WrittenFile } from '../uploads.ts';

/** The changes whose lists contain the file: from `came` up to, not including, `went`. */
interface Replaced {
  readonly came: number;
  readonly went: number;
}

export function createRunIndex(filesMax: number, bytesMax: number): FileIndex {
  // By stored name. A replacement keeps the position (R2), as a Map does.
  const stored = new Map<string, { readonly file: WrittenFile; readonly came: number }>();
  const replaced = new Map<string, Replaced>();
  let change = 0;
  let bytes = 0;
  const sizeOf = (storedName: string): number => stored.get(storedName)?.file.size ?? 0;
  return {
    list(storedName) {
      const found = storedName === undefined ? stored.values() : [stored.get(storedName)];
      return { files: [...found].flatMap((entry) => entry?.file ?? []), change };
    },
    commit(files) {
      const added = files.filter(({ storedName }) => !stored.has(storedName)).length;
      const grown = files.reduce((sum, { storedName, size }) => sum + size - sizeOf(storedName), 0);
      const isFull = stored.size + added > filesMax || bytes + grown > bytesMax;
      if (isFull) throw tooManyFiles(filesMax, bytesMax);
      change += 1;
      bytes += grown;
      for (const file of files) {
        const old = stored.get(file.storedName);
        if (old !== undefined) {
          replaced.set(old.file.temporaryName, { came: old.came, went: change });
        }
        stored.set(file.storedName, { file, came: change });
      }
      return files.length - added;
    },
    remove({ storedName, temporaryName }) {
      const found = stored.get(storedName);
      if (found?.file.temporaryName !== temporaryName) return;
      change += 1;
      bytes -= found.file.size;
      stored.delete(storedName);
      replaced.set(temporaryName, { came: found.came, went: change });
    },
    // In memory, a failed commit has stored nothing, so none of these is stored.
    abandon(temporaryNames) {
      for (const name of temporaryNames) replaced.set(name, { came: 0, went: 0 });
      return temporaryNames;
    },
    removable(reading) {
      const changes = [...reading];
      const isRead = ({ came, went }: Replaced): boolean =>
        changes.some((read) => came <= read && read < went);
      const unread = [...replaced].filter(([, versions]) => !isRead(versions));
      return unread.slice(0, removableMax).map(([temporaryName]) => temporaryName);
    },
    forget(temporaryNames) {
      for (const name of temporaryNames) replaced.delete(name);
    },
    replaced: () => [...replaced.keys()],
  };
}
