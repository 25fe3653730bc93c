/** A file of a multipart request, as the `upload` mutation receives it (Spec §4.1 rule 4, R19). */

import type { LogFacts } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';

/**
 * A class, so that the scalar can tell a file from JSON. It has no enumerable members, because
 * graphql inspects them if a variable of another type holds a file.
 */
export class UploadedFile {
  readonly #facts: LogFacts;
  readonly #store: () => MaybePromise<void>;

  constructor(facts: LogFacts, store: () => MaybePromise<void>) {
    this.#facts = facts;
    this.#store = store;
  }

  /**
   * Values for the log: part name, client's file name, temporary file name, content type, charset
   * and size.
   */
  get facts(): LogFacts {
    return this.#facts;
  }

  /** Stores the file. Files that are not stored are removed at the end of the request. */
  store(): MaybePromise<void> {
    return this.#store();
  }

  /** What graphql prints in an error about the value. */
  toJSON(): string {
    return 'an uploaded file';
  }
}
