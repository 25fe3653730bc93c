/** Posts over REST (Spec §4.2, R7, R8, R11). */

import type { ReaderHandler } from '../auth/access.ts';
import { toId } from '../domain/ids.ts';
import { checkOwner } from '../domain/readers.ts';
import { readJson } from '../http/json.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { postStatuses } from '../records/list-query.ts';
import { getRecord, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import { andThen } from '../maybe-promise.ts';
import type { Post } from '../store/model.ts';
import type { PostMembers } from '../store/store.ts';
import { changeRecord, readMergePatch } from './changes.ts';
import { decoderOf, oneOf, optional, text } from './decode.ts';
import type { HandlerDeps } from './deps.ts';
import { onceOf, toWritten } from './once.ts';

/** How routes find the post of `{id}`, and list all posts. */
export const postRoute: ListRoute<Post> & RecordRoute<string, Post> = {
  key: '/posts',
  noun: 'post',
  list: ({ posts }, filter) => posts.list(filter),
  isFiltered: true,
  find: ({ posts }, id) => posts.find(id),
  toId,
  members: ['id', 'title', 'content', 'status', 'createdAt'],
  toJson,
};

const decodePost = decoderOf<Pick<Post, 'title' | 'content'>>({ title: text, content: text });

/** The members that a merge patch changes (R37). */
const decodeChange = decoderOf<Partial<PostMembers>>({
  title: optional(text),
  content: optional(text),
  status: optional(oneOf(postStatuses)),
});

type PostDeps = Pick<
  HandlerDeps,
  'store' | 'viewerOf' | 'readerOf' | 'responses' | 'records' | 'config'
>;

export function createPostHandlers(deps: PostDeps) {
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
  const route = { get, toJson, viewerOf, store };
  const updateBy =
    (read: (request: HttpRequest) => Promise<Partial<PostMembers>>): Handler =>
    async (request) => {
      const refuse = async (error: unknown): Promise<never> => {
        // If the post does not exist, 404 comes before any fault of the body.
        await get(request);
        throw error;
      };
      const change = await read(request).catch(refuse);
      return changeRecord(request, route, (id, options) => posts.update(id, change, options));
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
      const response = created(request, post.id, `/posts/${post.id}`);
      return andThen(response, (made) => toWritten(made, post));
    },
    update: updateBy((request) => readJson(request, bodyBytesMax, decodePost)),
    patch: updateBy((request) => readMergePatch(request, bodyBytesMax, decodeChange)),
    remove: (request) => changeRecord(request, route, (id, options) => posts.remove(id, options)),
  } satisfies Readonly<Record<string, ReaderHandler>>;
}

/** R11: the members in this order. */
function toJson({ id, title, content, status, createdAt }: Post): string {
  return JSON.stringify({ id, title, content, status, createdAt });
}
