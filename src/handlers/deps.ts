/** What the handlers use: each takes the parts that it needs. */

import type { Access } from '../auth/access.ts';
import type { ChangePassword, Login } from '../auth/login.ts';
import type { Config } from '../config.ts';
import type { AddComment } from '../domain/comments.ts';
import type { Log } from '../log.ts';
import type { ToListResponse } from '../records/list-response.ts';
import type { RecordResponses } from '../records/record-responses.ts';
import type { ResponseCache } from '../records/response-cache.ts';
import type { RunInTurn } from '../scheduler.ts';
import type { Uploads } from '../store/files/uploads.ts';
import type { Store } from '../store/store.ts';

export interface HandlerDeps extends Access {
  readonly config: Config;
  readonly store: Store;
  readonly records: RecordResponses;
  readonly responses: ResponseCache;
  readonly toListResponse: ToListResponse;
  readonly uploads: Pick<
    Uploads,
    'begin' | 'list' | 'readPage' | 'read' | 'keepReplaced' | 'remove' | 'requests'
  >;
  readonly addComment: AddComment;
  readonly login: Login;
  readonly changePassword: ChangePassword;
  readonly log: Log;
  readonly run: RunInTurn;
  /** Names files that come without a name (Spec §4.4 rule 2). */
  readonly createUuid: () => string;
}
