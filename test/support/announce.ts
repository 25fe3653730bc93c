/** Where the servers of tests say that they are up, for a prober that calls them all. */

import { channel } from 'node:diagnostics_channel';

/** `down`: about to stop. */
export interface Announcement {
  readonly kind: 'up' | 'down';
  readonly url: string;
  readonly pid: number;
  readonly name: string;
}

export const announcements = channel('servers of tests');

/** Under the name of its test. Call what it returns just before the server is stopped. */
export function announce(context: object, url: string, pid: number = process.pid): () => void {
  const name = 'name' in context ? String(context.name) : '';
  announcements.publish({ kind: 'up', url, pid, name } satisfies Announcement);
  return () => announcements.publish({ kind: 'down', url, pid, name } satisfies Announcement);
}
