/** Who has no token, and what such a comment has beside its text. */

import type { Commenter } from '../../dist/domain/comments.js';

export const anyone: Commenter = {
  reader: undefined,
  account: undefined,
  client: () => '192.0.2.1',
};
export const unsigned = { name: null, authorId: null };
