/** A row of the table of authors, which both durable drivers write alike → the record. */

import type { Author } from './model.ts';
import { unescapeText } from './text-escape.ts';

export function toAuthor(row: Readonly<Record<string, unknown>>): Author {
  return {
    id: String(row['id']),
    name: unescapeText(String(row['name'])),
    email: unescapeText(String(row['email'])),
    createdAt: String(row['created_at']),
  };
}
