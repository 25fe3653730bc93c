/** File operations of which any single call can be made to fail. */

import { type FileOperations, fileOperations } from '../../dist/store/files/operations.js';

export interface Faults {
  /** The call that fails, counted from now on; 0: none. */
  readonly failAt: (n: number) => void;
  readonly files: FileOperations;
}

export function withFaults(code: string): Faults {
  const { guard, failAt } = createGuard(code);
  return { failAt, files: guarded(guard) };
}

type Guard = <T>(act: () => Promise<T>) => Promise<T>;

function createGuard(code: string): {
  readonly guard: Guard;
  readonly failAt: (n: number) => void;
} {
  let left = 0;
  return {
    failAt(n) {
      left = n;
    },
    guard(act) {
      left -= 1;
      if (left !== 0) return act();
      return Promise.reject(Object.assign(new Error('injected'), { code }));
    },
  };
}

function guarded(guard: Guard): FileOperations {
  return {
    createFolder: (start) => guard(() => fileOperations.createFolder(start)),
    listFolders: (path) => guard(() => fileOperations.listFolders(path)),
    removeFolder: (path) => guard(() => fileOperations.removeFolder(path)),
    create: (path) => guard(() => fileOperations.create(path)),
    open: (path) => guard(() => fileOperations.open(path)),
    write: (descriptor, chunks) => guard(() => fileOperations.write(descriptor, chunks)),
    read: (descriptor, into, at) => guard(() => fileOperations.read(descriptor, into, at)),
    async close(descriptor) {
      // Also a close that fails gives its descriptor back.
      await fileOperations.close(descriptor);
      await guard(() => Promise.resolve());
    },
    remove: (path) => guard(() => fileOperations.remove(path)),
    sync: (path) => guard(() => fileOperations.sync(path)),
    makeFolder: (path) => guard(() => fileOperations.makeFolder(path)),
    syncFolder: (path) => guard(() => fileOperations.syncFolder(path)),
    listNames: (path, max) => guard(() => fileOperations.listNames(path, max)),
    modifiedAt: (path) => guard(() => fileOperations.modifiedAt(path)),
    touch: (path) => guard(() => fileOperations.touch(path)),
    createText: (path, text) => guard(() => fileOperations.createText(path, text)),
    readText: (path) => guard(() => fileOperations.readText(path)),
  };
}
