/** A wrapper that measures the calls of a store. */

import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { List, Page } from './list.ts';
import type { Area, Store } from './store.ts';

/** Reports a call: the port, such as `posts`, and whether the call can change something. */
export type StoreWatch = (area: TimedArea, kind: 'read' | 'write', milliseconds: number) => void;

type TimedArea = keyof Pick<Store, Area | 'related' | 'accounts' | 'loginFailures'>;

const writes: readonly unknown[] =
  'create update remove add forget takeTurn save change changeAll'.split(' ');

/** Wraps a store. Each page of a list counts as a call. */
export function timeStore(store: Store, watch: StoreWatch): Store {
  // The ports are objects; the other members are functions and a flag.
  const timed = Object.entries(store).map(([name, port]: [string, unknown]) =>
    isObject(port) ? [name, timeArea(port, name as TimedArea, watch)] : [name, port],
  );
  return Object.fromEntries(timed) as Store; // each member was replaced by its like
}

function timeArea(area: object, name: TimedArea, watch: StoreWatch): object {
  return new Proxy(area, {
    get(target, member) {
      const value: unknown = Reflect.get(target, member);
      if (isList(value)) return timeList(value, name, watch);
      if (typeof value !== 'function') return value;
      const kind = writes.includes(member) ? 'write' : 'read';
      return (...args: readonly unknown[]): unknown => {
        const result = timeCall(
          () => Reflect.apply(value, target, args) as unknown,
          (milliseconds) => watch(name, kind, milliseconds),
        );
        return isList(result) ? timeList(result, name, watch) : result;
      };
    },
  });
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isList(value: unknown): value is List<unknown> {
  return isObject(value) && 'exceeds' in value;
}

function timeList(list: List<unknown>, name: TimedArea, watch: StoreWatch): List<unknown> {
  const time = <T>(call: () => MaybePromise<T>): MaybePromise<T> =>
    timeCall(call, (milliseconds) => watch(name, 'read', milliseconds));
  const timePage = ({ records, next }: Page<unknown>): Page<unknown> => {
    return { records, next: next && ((): MaybePromise<Page<unknown>> => read(next)) };
  };
  const read = (call: () => MaybePromise<Page<unknown>>): MaybePromise<Page<unknown>> =>
    andThen(time(call), timePage);
  return {
    read: (range) => read(() => list.read(range)),
    exceeds: (count) => time(() => list.exceeds(count)),
  };
}

function timeCall<T>(call: () => T, tell: (milliseconds: number) => void): T {
  const startedAt = performance.now();
  const done = (): void => tell(performance.now() - startedAt);
  let result: T | undefined;
  try {
    return (result = call());
  } finally {
    if (isPromise<unknown>(result)) void result.then(done, done);
    else done();
  }
}
