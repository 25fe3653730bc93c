/** Posts over REST (Spec §4.2, R7, R8, R11). */

import { toId } from '../domain/scalars.ts';
import { readJson } from '../http/json.ts';
import {
  emptyResponse,
  type Handler,
  type HttpRequest,
  type HttpResponse,
} from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import {
  getFound,
  getId,
  type ListRoute,
  postStatuses,
  type RecordRoute,
} from '../records/records.ts';
import type { Account, Post } from '../store/model.ts';
import type { PostMembers, Records } from '../store/store.ts';
import type { Access } from './access.ts';
import { decoderOf, type HandlerDeps, oneOf, optional, text } from './input.ts';
import { type Apply, changeRecord, readMergePatch } from './patches.ts';

export interface PostDeps extends HandlerDeps {
  /** The account of the request's token (R23); undefined without one. Throws if it is invalid. */
  readonly viewerOf: (request: HttpRequest) => MaybePromise<Account | undefined>;
  readonly access: Pick<Access, 'checkOwner'>;
}

/** How routes find the post of `{id}`, and list all posts. */
export const postRoute: ListRoute<Post> & RecordRoute<string, Post> = {
  key: '/posts',
  noun: 'post',
  list: ({ posts }, status) => (status === undefined ? posts.all : posts.ofStatus(status)),
  hasStatus: true,
  find: ({ posts }, id) => posts.find(id),
  toId,
  toJson,
};

const decodePost = decoderOf<Pick<Post, 'title' | 'content'>>({ title: text, content: text });

/** The members that a merge patch changes (R37). */
const decodeChange = decoderOf<Partial<PostMembers>>({
  title: optional(text),
  content: optional(text),
  status: optional(oneOf(postStatuses)),
});

export function createPostHandlers(deps: PostDeps) {
  const { store, viewerOf, access, records, config } = deps;
  const { posts } = store;
  return {
    list: (request) => records.list(request, postRoute),
    find: records.find(postRoute),

    create: async (request) => {
      const author = await viewerOf(request);
      const { title, content } = await readTexts(request);
      // Not spread: copying an object of this shape takes a twentieth of the request.
      const { id } = await posts.create({ title, content, authorId: author?.id ?? null });
      return emptyResponse(201, ['Location', `/posts/${id}`]);
    },

    update: async (request) => {
      await getOwnPost(request);
      const texts = await readTexts(request);
      return changePost(request, (id, expected) => posts.update(id, texts, expected));
    },

    patch: async (request) => {
      await getOwnPost(request);
      const change = await readMergePatch(request, config.bodyBytesMax, decodeChange);
      return changePost(request, (id, expected) => posts.update(id, change, expected));
    },

    remove: (request) => changePost(request, (id, expected) => posts.remove(id, expected)),
  } satisfies Readonly<Record<string, Handler>>;

  function changePost(request: HttpRequest, apply: Apply<Post>): Promise<HttpResponse> {
    return changeRecord(request, { get: () => getOwnPost(request), toJson, apply });
  }

  /** R36: throws 403 for the post of another author. */
  async function getOwnPost(request: HttpRequest): Promise<Post> {
    const post = await getPost(store, request);
    await access.checkOwner(request, post.authorId);
    return post;
  }

  function readTexts(request: HttpRequest): MaybePromise<Pick<Post, 'title' | 'content'>> {
    return readJson(request, config.bodyBytesMax, decodePost);
  }
}

/** Returns the post of the path's `{id}`. Throws 404. */
export async function getPost({ posts }: Pick<Records, 'posts'>, request: HttpRequest) {
  return getFound(await posts.find(getId(request, postRoute)), postRoute.noun);
}

/** R11: the members in this order. */
function toJson({ id, title, content, status, createdAt }: Post): string {
  return JSON.stringify({ id, title, content, status, createdAt });
}
