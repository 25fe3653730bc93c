/** The schema as a file, with `@uppercase`, which introspection does not show. */

import { AppError } from '../../errors.ts';
import { createEtag, matchesEtag } from '../../http/etag.ts';
import { negotiate } from '../../http/media-type.ts';
import { emptyReply, type HttpReply } from '../../http/message.ts';

export interface SchemaFile {
  /** `accept`, `ifNoneMatch`: the headers. Throws `not_acceptable`. */
  reply(accept: string | undefined, ifNoneMatch: string | undefined): HttpReply;
}

export function createSchemaFile(text: string): SchemaFile {
  const tag = createEtag(text);
  const cacheHeaders = ['ETag', tag, 'Vary', 'Accept', 'Cache-Control', 'no-cache'];
  return {
    reply(accept, ifNoneMatch) {
      const type = negotiate(accept, ['text/plain', 'application/graphql']);
      if (type === undefined) {
        throw new AppError('not_acceptable', 'The schema is text/plain or application/graphql.');
      }
      if (matchesEtag(ifNoneMatch, tag)) return emptyReply(304, cacheHeaders);
      const headers = ['Content-Type', `${type}; charset=utf-8`, ...cacheHeaders];
      return { status: 200, headers, body: text };
    },
  };
}
