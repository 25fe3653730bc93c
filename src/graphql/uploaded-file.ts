/** A file of a multipart request, as the `upload` mutation gets it (Spec §4.1 rule 4, R19). */

import type { LogFacts } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** A class, so that the scalar can tell it from everything that a client can write as JSON. */
export class UploadedFile {
  /**
   * Part name, client file name, stored temporary file name, content type, charset and size: what
   * the log says of it.
   */
  readonly facts: LogFacts;
  /** Puts it into the store of files. What is not kept is gone with the request. */
  readonly keep: () => MaybePromise<void>;

  constructor(facts: LogFacts, keep: () => MaybePromise<void>) {
    this.facts = facts;
    this.keep = keep;
  }
}
