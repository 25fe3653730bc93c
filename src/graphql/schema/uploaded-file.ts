/** A file of a multipart request, as the `upload` mutation gets it (Spec §4.1 rule 4, R19). */

import type { LogFacts } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';

/**
 * A class, so that the scalar can tell it from everything that a client can write as JSON. It has
 * no members of its own: where a variable of another type holds a file, graphql looks at these.
 */
export class UploadedFile {
  readonly #facts: LogFacts;
  readonly #keep: () => MaybePromise<void>;

  constructor(facts: LogFacts, keep: () => MaybePromise<void>) {
    this.#facts = facts;
    this.#keep = keep;
  }

  /**
   * Part name, client file name, stored temporary file name, content type, charset and size: what
   * the log says of it.
   */
  get facts(): LogFacts {
    return this.#facts;
  }

  /** Puts it into the store of files. What is not kept is gone with the request. */
  keep(): MaybePromise<void> {
    return this.#keep();
  }

  /** What graphql shows of it in an error. */
  toJSON(): string {
    return 'an uploaded file';
  }
}
