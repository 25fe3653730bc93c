/** The three scalars (Spec §2.1): parsing and serialising, and the value of `Upload`. */

import { GraphQLError, Kind, type ValueNode } from 'graphql';
import { toId } from '../../domain/ids.ts';
import { parseLocalDateTime } from '../../domain/local-date-time.ts';
import type { LogFacts } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { CommitOptions } from '../../store/file-index.ts';
import type { Repeated } from '../../store/store.ts';

/** The functions of a scalar. They throw a GraphQLError with a message for the client. */
interface ScalarRules {
  readonly parseValue: (value: unknown) => unknown;
  readonly parseLiteral: (node: ValueNode) => unknown;
  readonly serialize: (value: unknown) => unknown;
}

export const scalarRules: Readonly<Record<string, ScalarRules>> = {
  LocalDateTime: textScalar(parseLocalDateTime, 'LocalDateTime needs an ISO-8601 date-time.'),
  UUID: textScalar(toId, 'UUID needs the text form of a UUID.'),
  Upload: {
    parseValue(value) {
      // No JSON value is a file: it can come only from a multipart request.
      if (value instanceof UploadedFile) return value;
      throw new GraphQLError('Upload needs a file of a multipart request.');
    },
    parseLiteral(node) {
      throw new GraphQLError('Upload is given as a variable.', { nodes: node });
    },
    serialize() {
      throw new GraphQLError('Upload cannot be returned.');
    },
  },
};

/** A scalar that is a string; `parse` returns the canonical form, or undefined. */
function textScalar(parse: (text: string) => string | undefined, refusal: string): ScalarRules {
  const read = (value: unknown, nodes?: ValueNode): string => {
    const written = typeof value === 'string' ? parse(value) : undefined;
    if (written === undefined) throw new GraphQLError(refusal, nodes && { nodes });
    return written;
  };
  return {
    parseValue: (value) => read(value),
    parseLiteral: (node) => read(node.kind === Kind.STRING ? node.value : undefined, node),
    serialize: (value) => read(value),
  };
}

interface Received {
  /**
   * Values for the log: part name, client's file name, temporary file name, content type, charset
   * and size.
   */
  readonly facts: LogFacts;
  readonly storedName: string;
  readonly store: (by?: CommitOptions) => MaybePromise<Repeated | undefined>;
}

/**
 * A file of a multipart request, as the `upload` mutation receives it (Spec §4.1 rule 4, R19). A
 * class, so that the scalar can tell a file from JSON. It has no enumerable members, because
 * graphql inspects them if a variable of another type holds a file.
 */
export class UploadedFile {
  readonly #received: Received;

  constructor(received: Received) {
    this.#received = received;
  }

  get storedName(): string {
    return this.#received.storedName;
  }

  get facts(): LogFacts {
    return this.#received.facts;
  }

  /**
   * Stores the file; a value if the same was done before (R40). Files that are not stored are
   * removed at the end of the request.
   */
  store(by?: CommitOptions): ReturnType<Received['store']> {
    return this.#received.store(by);
  }

  /** What graphql prints in an error about the value. */
  toJSON(): string {
    return 'an uploaded file';
  }
}
