/** Posts over REST (Spec §4.2, R7, R8, R11). */

import { toId } from '../domain/ids.ts';
import { checkConditions, createEtag, isConditional } from '../http/etag.ts';
import { readJson } from '../http/json.ts';
import { emptyResponse, type Handler, type HttpRequest } from '../http/message.ts';
import {
  createFind,
  getFound,
  getId,
  type ListRoute,
  type RecordRoute,
  toPagedResponse,
} from '../http/records.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account, Post } from '../store/model.ts';
import type { Reading } from '../store/reading.ts';
import type { PostTexts, Records } from '../store/store.ts';
import { type RecordDeps, textsOf } from './input.ts';

export interface PostDeps extends RecordDeps {
  /** The account of the request's token (R23); undefined without one. Throws if it is invalid. */
  readonly viewer: (request: HttpRequest) => MaybePromise<Account | undefined>;
}

/** How routes find the post of `{id}`, and list all posts. */
export const postRoute: ListRoute<Reading, Post> & RecordRoute<Reading, string, Post> = {
  key: '/posts',
  noun: 'post',
  list: ({ posts }) => posts.all,
  find: ({ posts }, id) => posts.find(id),
  toId,
  toJson,
};

const decodePost = textsOf(['title', 'content']);

export function createPostHandlers(deps: PostDeps) {
  const { store, viewer, responses, toListResponse, config } = deps;
  const { posts } = store;
  return {
    list: (request) => toPagedResponse(request, toListResponse, postRoute),
    find: createFind(responses, postRoute),

    create: (request) =>
      andThen(viewer(request), (author) =>
        andThen(readTexts(request), (texts) =>
          andThen(posts.create({ ...texts, authorId: author?.id ?? null }), ({ id }) =>
            emptyResponse(201, ['Location', `/posts/${id}`]),
          ),
        ),
      ),

    update: async (request) => {
      await getPost(store, request);
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
      const post = await getPost(store, request);
      const hasConditions = isConditional(request);
      if (hasConditions) checkConditions(request, createEtag(toJson(post)));
      if (await change(post, hasConditions ? post : undefined)) return emptyResponse(204);
    }
  }

  function readTexts(request: HttpRequest): MaybePromise<PostTexts> {
    return readJson(request, config.bodyBytesMax, decodePost);
  }
}

/** Returns false if the post was deleted, or is not `expected` any more. */
type Change = (post: Post, expected: Post | undefined) => MaybePromise<boolean>;

/** Returns the post of the path's `{id}`. Throws 404. */
export function getPost({ posts }: Records, request: HttpRequest): MaybePromise<Post> {
  return andThen(posts.find(getId(request, postRoute)), (post) => getFound(post, postRoute.noun));
}

/** R11: the members in this order. */
function toJson({ id, title, content, status, createdAt }: Post): string {
  return JSON.stringify({ id, title, content, status, createdAt });
}
