/** Posts over REST (Spec §4.2, R7, R8, R11). */

import type { ReaderHandler } from '../auth/access.ts';
import { toId } from '../domain/ids.ts';
import { checkOwner } from '../domain/readers.ts';
import { readJson } from '../http/json.ts';
import type { HttpRequest } from '../http/message.ts';
import { postStatuses } from '../records/list-query.ts';
import { getRecord, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import type { Post, PostStatus } from '../store/model.ts';
import type { PostMembers } from '../store/store.ts';
import { changeRecord, readFor, readMergePatch, tagBy } from './changes.ts';
import { decoderOf, oneOf, optional, text } from './decode.ts';
import type { HandlerDeps } from './deps.ts';
import { onceOf, toWritten } from './once.ts';

/** How routes find the post of `{id}`, and list all posts. */
export const postRoute: ListRoute<Post, PostStatus> & RecordRoute<string, Post> = {
  key: '/posts',
  noun: 'post',
  list: ({ posts }, filter) => posts.list(filter),
  hasAuthors: true,
  statuses: postStatuses,
  find: ({ posts }, id) => posts.find(id),
  toId,
  toJson,
};

const decodePost = decoderOf<Pick<Post, 'title' | 'content'>>({ title: text, content: text });

const aStatus = optional(oneOf(postStatuses));

/** A whole record may have a status, by the rules of R37 (R8). */
const decodeWhole = decoderOf<Pick<Post, 'title' | 'content'> & { status?: PostStatus }>({
  title: text,
  content: text,
  status: aStatus,
});

/** The members that a merge patch changes (R37). */
const decodeChange = decoderOf<Partial<PostMembers>>({
  title: optional(text),
  content: optional(text),
  status: aStatus,
});

export function createPostHandlers(deps: HandlerDeps) {
  const { store, viewerOf, readerOf, responses, records, config } = deps;
  const { bodyBytesMax } = config;
  const { posts } = store;

  /** R36: throws 403 for the post of another author. */
  const get = async (request: HttpRequest): Promise<Post> => {
    const reader = await readerOf(request);
    const post = await getRecord(responses.read(reader), request, postRoute);
    checkOwner(reader, post.authorId);
    return post;
  };
  const current = { get, tagOf: tagBy(toJson), viewerOf, store };
  const update = async (request: HttpRequest, body: Promise<Partial<PostMembers>>) => {
    const change = await readFor(() => get(request), body);
    return changeRecord(request, current, ({ id }, options) => posts.update(id, change, options));
  };

  const created = records.created(postRoute, readerOf);

  return {
    list: (request, reader) => records.list(request, reader, postRoute),
    find: records.find(postRoute),

    create: async (request) => {
      const author = await viewerOf(request);
      const { title, content } = await readJson(request, bodyBytesMax, decodePost);
      // Not spread: copying an object of this shape takes a twentieth of the request.
      const draft = { title, content, authorId: author?.id ?? null };
      const post = await posts.create(draft, onceOf(request, author));
      return toWritten(await created(request, post.id, `/posts/${post.id}`), post);
    },
    update: (request) => update(request, readJson(request, bodyBytesMax, decodeWhole)),
    patch: (request) => update(request, readMergePatch(request, bodyBytesMax, decodeChange)),
    remove: (request) =>
      changeRecord(request, current, ({ id }, options) => posts.remove(id, options)),
  } satisfies Readonly<Record<string, ReaderHandler>>;
}

/** R11: the members in this order. */
function toJson({ id, title, content, status, createdAt }: Post): string {
  return JSON.stringify({ id, title, content, status, createdAt });
}
