/** Comments over REST (Spec §4.2, R7, R8, R11), and their moderation (R48, R52). */

import type { ReaderHandler } from '../auth/access.ts';
import { toId } from '../domain/ids.ts';
import {
  checkOwner,
  type CommentOfPost,
  type Records,
  type SeenComment,
} from '../domain/readers.ts';
import { AppError } from '../errors.ts';
import { createClientAddress } from '../http/client-address.ts';
import { readJson } from '../http/json.ts';
import { type HttpRequest, type HttpResponse, jsonTextResponse } from '../http/message.ts';
import { commentStatuses } from '../records/list-query.ts';
import { getFound, getId, getRecord, type RecordRoute } from '../records/record-responses.ts';
import type { Post } from '../store/model.ts';
import type { Once } from '../store/store.ts';
import { changeRecord, readFor, readMergePatch, tagBy } from './changes.ts';
import { aName, decoderOf, oneOf, optional, optionalOrNull, text } from './decode.ts';
import type { HandlerDeps } from './deps.ts';
import { changeOnce, onceOf, toWritten } from './once.ts';
import { postRoute } from './posts.ts';

interface FoundComment extends Pick<SeenComment, 'id' | 'content' | 'status'> {
  readonly post: Pick<Post, 'id' | 'title'>;
  readonly name?: string;
}

const commentRoute: RecordRoute<string, FoundComment> = {
  key: '/comments',
  noun: 'comment',
  toId,
  find: findComment,
  toJson: (comment) => JSON.stringify(comment),
};

interface Named {
  readonly name?: string | null;
}
type Item = Omit<SeenComment, 'postId' | 'authorId'>;

const decodeDraft = decoderOf<{ content: string } & Named>({
  content: text,
  name: optionalOrNull(aName),
});

/** How the comment of the path is found to be changed. R36: 403 for one on another's post. */
function toCurrent({ readerOf, responses, viewerOf, store }: HandlerDeps) {
  const get = async (request: HttpRequest): Promise<FoundComment> => {
    const seen = responses.read(await readerOf(request));
    const comment = await getRecord(seen, request, commentRoute);
    const post = await seen.posts.find(comment.post.id);
    checkOwner(seen.reader, post?.authorId ?? null);
    return comment;
  };
  return { get, tagOf: tagBy(commentRoute.toJson), viewerOf, store };
}

export function createCommentHandlers(deps: HandlerDeps) {
  const { store, addComment, viewerOf, asReader, readerOf, responses, records, config } = deps;

  const clientAddress = createClientAddress(config.trustedProxies);

  const current = toCurrent(deps);
  const created = records.created(commentRoute, readerOf, '[]');

  return {
    list: (request, reader) => {
      const id = getId(request, postRoute);
      return records.list(request, reader, {
        key: `/posts/${id}/comments`,
        list: async (seen) => seen.comments.ofPost(await getRecord(seen, request, postRoute)),
        toJson: toItem,
        toId,
      });
    },
    add: async (request) => {
      const id = getId(request, postRoute);
      const account = await viewerOf(request);
      const reader = asReader(account);
      const getPost = () => getRecord(responses.read(reader), request, postRoute);
      const body = await readFor(getPost, readJson(request, config.bodyBytesMax, decodeDraft));
      const draft = { ...body, postId: id };
      const client = (): string => clientAddress(request);
      const once = onceOf(request, account);
      const added = await addComment({ reader, account, client }, draft, once);
      const comment = getFound(added, postRoute.noun);
      const location = `/comments/${comment.id}`;
      const response =
        comment.isPending === true
          ? toPending({ ...draft, id: comment.id }, location)
          : await created(request, comment.id, location);
      return toWritten(response, comment);
    },
    find: records.find(commentRoute),
    remove: (request) =>
      changeRecord(request, current, ({ id }, options) => store.comments.remove([id], options)),
  } satisfies Readonly<Record<string, ReaderHandler>>;
}

/** Comments that are removed together. */
const removedMax = 1_000;
/** Those that are looked for in one turn. */
const foundAtOnce = 100;

const decodeApproval = decoderOf<{ status?: 'PUBLISHED' }>({
  status: optional(oneOf(['PUBLISHED'])),
});

const decodeRemovals = decoderOf<{ ids: readonly string[] }>({
  ids: (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= removedMax &&
    value.every((id) => typeof id === 'string' && toId(id) !== undefined)
      ? undefined
      : `must be a list of 1 to ${removedMax} ids`,
});

export function createModerationHandlers(deps: HandlerDeps) {
  const { store, viewerOf, asReader, responses, records, config, run } = deps;
  const { comments } = store;
  const current = toCurrent(deps);

  return {
    listAll: (request, reader) =>
      records.list(request, reader, {
        key: '/comments',
        list: (seen, { status }) => seen.comments.all(status),
        statuses: commentStatuses,
        toJson: toItemOfPost,
        toId,
      }),
    approve: async (request) => {
      const body = readMergePatch(request, config.bodyBytesMax, decodeApproval);
      const { status } = await readFor(() => current.get(request), body);
      return changeRecord(request, current, ({ id }, options) =>
        status === undefined ? true : comments.approve(id, options),
      );
    },
    removeMany: async (request) => {
      const askedAt = performance.now();
      const reader = asReader(await viewerOf(request));
      const given = await readJson(request, config.bodyBytesMax, decodeRemovals);
      const ids = [...new Set(given.ids.map((id) => id.toLowerCase()))];
      const response = jsonTextResponse(200, JSON.stringify({ removed: ids.length }));
      const findAuthor = async (id: string): Promise<string | null | undefined> => {
        const seen = responses.read(reader);
        const comment = await seen.comments.find(id);
        return comment && (await seen.posts.find(comment.postId))?.authorId;
      };
      const remove = async (once: Once | undefined): Promise<HttpResponse> => {
        for (;;) {
          const authors: (string | null | undefined)[] = [];
          for (let at = 0; at < ids.length; at += foundAtOnce) {
            const some = ids.slice(at, at + foundAtOnce);
            authors.push(...(await run(() => Promise.all(some.map(findAuthor)))));
          }
          const missing = ids.find((_, at) => authors[at] === undefined);
          if (missing !== undefined) {
            throw new AppError('not_found', `There is no comment with the id ${missing}.`);
          }
          for (const author of authors) checkOwner(reader, author ?? null);
          // False: one of them was removed, or approved, meanwhile.
          const removed = await comments.remove(ids, { once, askedAt });
          if (removed === false) continue;
          request.changed = ids;
          return toWritten(response, removed);
        }
      };
      return changeOnce(request, { viewerOf, store, done: response }, remove);
    },
  } satisfies Readonly<Record<string, ReaderHandler>>;
}

function toItemOfPost({ post, ...comment }: CommentOfPost): string {
  return `${toItem(comment).slice(0, -1)},"post":${JSON.stringify(post)}}`;
}

/** Until it is approved its writer does not find it, and is told here that it waits (R48). */
function toPending(
  { id, content, name }: { readonly id: string; readonly content: string } & Named,
  location: string,
): HttpResponse {
  const json = JSON.stringify({ id, content, name: name ?? undefined, status: 'PENDING' });
  const { headers, ...response } = jsonTextResponse(201, json);
  return { ...response, headers: [...headers, 'Location', location] };
}

async function findComment(
  { comments, posts }: Records,
  commentId: string,
): Promise<FoundComment | undefined> {
  const comment = await comments.find(commentId);
  const post = comment && (await posts.find(comment.postId));
  if (comment === undefined || post === undefined) return undefined;
  const { id, content, name, status } = comment;
  return {
    id,
    content,
    post: { id: post.id, title: post.title },
    ...(name !== null && { name }),
    ...(status && { status }),
  };
}

/** R11, R48: the members in this order. */
function toItem({ id, content, createdAt, name, status }: Item): string {
  if (name === null && status === undefined) return JSON.stringify({ id, content, createdAt });
  return JSON.stringify({ id, content, createdAt, name: name ?? undefined, status });
}
