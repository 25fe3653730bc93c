/** Posts over REST (Spec §4.2, R7, R8, R11). */

import { toId } from '../domain/ids.ts';
import { checkConditions, createEtag, isConditional } from '../http/etag.ts';
import { readJson } from '../http/json.ts';
import { emptyResponse, type Handler, type HttpRequest } from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/records.ts';
import type { Account, Post } from '../store/model.ts';
import type { PostTexts, Records } from '../store/store.ts';
import type { Access } from './access.ts';
import { type RecordDeps, textsOf } from './input.ts';

export interface PostDeps extends RecordDeps {
  /** The account of the request's token (R23); undefined without one. Throws if it is invalid. */
  readonly viewer: (request: HttpRequest) => MaybePromise<Account | undefined>;
  readonly access: Pick<Access, 'checkOwner'>;
}

/** How routes find the post of `{id}`, and list all posts. */
export const postRoute: ListRoute<Post> & RecordRoute<string, Post> = {
  key: '/posts',
  noun: 'post',
  list: ({ posts }) => posts.all,
  find: ({ posts }, id) => posts.find(id),
  toId,
  toJson,
};

const decodePost = textsOf(['title', 'content']);

export function createPostHandlers(deps: PostDeps) {
  const { store, viewer, access, records, config } = deps;
  const { posts } = store;
  return {
    list: (request) => records.list(request, postRoute),
    find: records.find(postRoute),

    create: async (request) => {
      const author = await viewer(request);
      const texts = await readTexts(request);
      const { id } = await posts.create({ ...texts, authorId: author?.id ?? null });
      return emptyResponse(201, ['Location', `/posts/${id}`]);
    },

    update: async (request) => {
      await getOwnPost(request);
      const texts = await readTexts(request);
      return changePost(request, ({ id }, expected) => posts.update(id, texts, expected));
    },

    remove: (request) => changePost(request, ({ id }, expected) => posts.remove(id, expected)),
  } satisfies Readonly<Record<string, Handler>>;

  /**
   * Changes the post, or throws 404 or 412. If another request changes it after the tag was
   * compared, the tag is compared again.
   */
  async function changePost(request: HttpRequest, change: Change) {
    for (;;) {
      const post = await getOwnPost(request);
      const hasConditions = isConditional(request);
      if (hasConditions) checkConditions(request, createEtag(toJson(post)));
      if (await change(post, hasConditions ? post : undefined)) return emptyResponse(204);
    }
  }

  /** R36: throws 403 for the post of another author. */
  async function getOwnPost(request: HttpRequest): Promise<Post> {
    const post = await getPost(store, request);
    await access.checkOwner(request, post.authorId);
    return post;
  }

  function readTexts(request: HttpRequest): MaybePromise<PostTexts> {
    return readJson(request, config.bodyBytesMax, decodePost);
  }
}

/** Returns false if the post was deleted, or is not `expected` any more. */
type Change = (post: Post, expected: Post | undefined) => MaybePromise<boolean>;

/** Returns the post of the path's `{id}`. Throws 404. */
export async function getPost({ posts }: Pick<Records, 'posts'>, request: HttpRequest) {
  return getFound(await posts.find(getId(request, postRoute)), postRoute.noun);
}

/** R11: the members in this order. */
function toJson({ id, title, content, status, createdAt }: Post): string {
  return JSON.stringify({ id, title, content, status, createdAt });
}
