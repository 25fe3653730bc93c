/** Between rows of PostgreSQL and records, and what the parts of the driver share. */

import type { Comment, Post } from '../model.ts';
import type { Pool, Row } from './pool.ts';
import { unescapeText } from '../text-escape.ts';

export interface PostgresContext {
  readonly pool: Pool;
  readonly createId: () => string;
  readonly now: () => string;
}

/**
 * An array as PostgreSQL reads it; ids hold nothing that would need quotes. It is unnested and
 * joined: `= ANY` would go through all of it for every row.
 */
export function toIdArray(ids: readonly string[]): string {
  return `{${ids.join(',')}}`;
}

export function toPost(row: Row): Post {
  return {
    id: String(row['id']),
    title: unescapeText(String(row['title'])),
    content: unescapeText(String(row['content'])),
    status: row['status'] as Post['status'], // as it was stored
    createdAt: String(row['created_at']),
    authorId: row['author_id'] as string | null, // by the schema
  };
}

export function toComment(row: Row): Comment {
  return {
    id: String(row['id']),
    content: unescapeText(String(row['content'])),
    createdAt: String(row['created_at']),
    postId: String(row['post_id']),
  };
}
