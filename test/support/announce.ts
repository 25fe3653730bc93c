/** Where the servers of tests say that they are up, for a prober that calls them all. */

import { channel } from 'node:diagnostics_channel';

export type Announcement =
  | { readonly kind: 'up'; readonly url: string; readonly pid: number; readonly name: string }
  /** About to stop, at this time of `clock`. */
  | { readonly kind: 'down'; readonly url: string; readonly at: number };

export const announcements = channel('servers of tests');

/** Under the name of its test. Call what it returns just before the server is stopped. */
export function announce(context: object, url: string, pid: number = process.pid): () => void {
  const name = 'name' in context ? String(context.name) : '';
  announcements.publish({ kind: 'up', url, pid, name } satisfies Announcement);
  return () => announcements.publish({ kind: 'down', url, at: clock() } satisfies Announcement);
}

/** Milliseconds on a clock that all processes of the machine share. */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
