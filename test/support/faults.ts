/** Calls of the file system that fail, or write only in pieces, in the folders of these tests. */

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

export const faults = {
  /** The code of the error. */
  code: 'EIO',
  /** The call that fails, counted from now on; 0: none. */
  failAt: 0,
  /** The maximum number of bytes that one call writes. */
  writeBytesMax: Infinity,
  /** Paths in the order in which they were flushed. */
  synced: [] as string[],
};

type Call = (...args: unknown[]) => unknown;
type Callback = (error: unknown, ...values: unknown[]) => void;

/** Descriptors of files in these folders. */
const opened = new Set<unknown>();

const isOurs = (path: unknown): boolean => String(path).includes('uploads-test-');

/** The error with which the call on this path or descriptor fails, if it does. */
function faultOf(subject: unknown): Error | undefined {
  if (faults.failAt === 0 || !(opened.has(subject) || isOurs(subject))) return undefined;
  faults.failAt -= 1;
  if (faults.failAt > 0) return undefined;
  return Object.assign(new Error('injected'), { code: faults.code });
}

function replace(owner: object, name: string, toGuarded: (real: Call) => Call): void {
  const real = Reflect.get(owner, name) as Call;
  const guarded = toGuarded(real);
  // By these Node's promisify() knows what they call back with.
  for (const symbol of Object.getOwnPropertySymbols(real)) {
    Reflect.set(guarded, symbol, Reflect.get(real, symbol));
  }
  Reflect.set(owner, name, guarded);
}

function withCallback(real: Call): Call {
  return (...args) => {
    const fault = faultOf(args[0]);
    return fault === undefined ? real(...args) : (args.at(-1) as Callback)(fault);
  };
}

function withPromise(real: Call): Call {
  return (...args) => {
    const fault = faultOf(args[0]);
    return fault === undefined ? real(...args) : Promise.reject(fault);
  };
}

replace(fs, 'read', withCallback);
replace(fs, 'open', (real) =>
  withCallback((...args) => {
    const settle = args.pop() as Callback;
    real(...args, (error: unknown, file: unknown) => {
      if (error === null && isOurs(args[0])) opened.add(file);
      settle(error, file);
    });
  }),
);
replace(fs, 'writev', (real) =>
  withCallback((file, chunks, ...rest) => {
    const [first = Buffer.alloc(0)] = chunks as Buffer[];
    const isWhole = faults.writeBytesMax === Infinity || !opened.has(file);
    real(file, isWhole ? chunks : [first.subarray(0, faults.writeBytesMax)], ...rest);
  }),
);
// Also a close that fails gives its descriptor back.
replace(fs, 'close', (real) => (file, settle) => {
  const fault = faultOf(file);
  opened.delete(file);
  real(file, (error: unknown) => (settle as Callback | undefined)?.(fault ?? error));
});

const calls = 'mkdir mkdtemp opendir readFile readdir rm stat unlink utimes writeFile';
for (const name of calls.split(' ')) replace(fs.promises, name, withPromise);
replace(fs.promises, 'open', (real) =>
  withPromise(async (...args) => {
    const handle = (await real(...args)) as fs.promises.FileHandle;
    const sync = handle.sync.bind(handle);
    handle.sync = () => {
      if (isOurs(args[0])) faults.synced.push(String(args[0]));
      return withPromise(sync)(args[0]) as Promise<void>;
    };
    return handle;
  }),
);

// Now the program has these functions, even if it was loaded before.
syncBuiltinESMExports();
