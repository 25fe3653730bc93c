/** A file of a multipart request, as the `upload` mutation gets it (Spec §4.1 rule 4, R19). */

import type { MaybePromise } from '../maybe-promise.ts';

/** The six values of Spec §4.1 rule 4. */
export interface FileFacts {
  /** The name of the part. */
  readonly name: string;
  /** The client's file name; empty where there is none. */
  readonly fileName: string;
  /** The name under which it lies in the run's folder. */
  readonly temporaryName: string;
  readonly contentType: string;
  /** Empty where the part names none. */
  readonly charset: string;
  readonly size: number;
}

/** A class, so that the scalar can tell it from everything that a client can write as JSON. */
export class UploadedFile {
  readonly facts: FileFacts;
  /** Puts it into the store of files. What is not kept is gone with the request. */
  readonly keep: () => MaybePromise<void>;

  constructor(facts: FileFacts, keep: () => MaybePromise<void>) {
    this.facts = facts;
    this.keep = keep;
  }
}
