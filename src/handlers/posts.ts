/** Posts over REST (Spec §4.2, R7, R8, R11). */

import type { Config } from '../config.ts';
import { toId } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import type { AnswerCache } from '../http/answer-cache.ts';
import { type JsonList, listReply } from '../http/json-list.ts';
import { readJson } from '../http/json.ts';
import { emptyReply, type Handler, type HttpRequest, jsonTextReply } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account, Post } from '../store/model.ts';
import type { Reading } from '../store/reading.ts';
import type { Records, Store } from '../store/store.ts';
import { decodeTexts } from './input.ts';

export interface PostDeps {
  readonly store: Store;
  /** Whose token the request carries (R23): undefined without one, a throw for a bad one. */
  readonly viewer: (request: HttpRequest) => MaybePromise<Account | undefined>;
  readonly answers: AnswerCache<Reading>;
  readonly config: Pick<Config, 'bodyBytesMax'>;
}

export type PostHandlers = Readonly<
  Record<'list' | 'create' | 'find' | 'update' | 'remove', Handler>
>;

export function createPostHandlers({ store, viewer, answers, config }: PostDeps): PostHandlers {
  const { posts } = store;
  const all: JsonList<Reading, Post> = {
    key: 'GET /posts',
    list: (records) => records.posts.list(),
    toJson,
  };

  return {
    list: () => listReply(answers, all),

    find(request) {
      const id = toId(request.params['id'] ?? '');
      if (id === undefined) throw noPost();
      // By the id alone: one post has one answer, however its path is spelled.
      return answers.get(`GET /posts/${id}`, (records, keep) =>
        andThen(getPost(records, request), (post) => keep(jsonTextReply(200, toJson(post)))),
      );
    },

    async create(request) {
      const author = await viewer(request);
      const { title, content } = decodeTexts(await readBody(request), ['title', 'content']);
      const post = await posts.create({ title, content, authorId: author?.id ?? null });
      return emptyReply(201, ['Location', `/posts/${post.id}`]);
    },

    async update(request) {
      const { id } = await getPost(store, request);
      const { title, content } = decodeTexts(await readBody(request), ['title', 'content']);
      if (!(await posts.update(id, { title, content }))) throw noPost();
      return emptyReply(204);
    },

    async remove(request) {
      const id = toId(request.params['id'] ?? '');
      if (id === undefined || !(await posts.remove(id))) throw noPost();
      return emptyReply(204);
    },
  };

  function readBody(request: HttpRequest): Promise<unknown> {
    return readJson(request, config.bodyBytesMax);
  }
}

/** The post that the path's `{id}` names, or 404 (R4). */
export function getPost(
  { posts }: Pick<Records, 'posts'>,
  request: HttpRequest,
): MaybePromise<Post> {
  const id = toId(request.params['id'] ?? '');
  if (id === undefined) throw noPost();
  return andThen(posts.find(id), (post) => {
    if (post === undefined) throw noPost();
    return post;
  });
}

export function noPost(): AppError {
  return new AppError('not_found', 'There is no post with this id.');
}

/** R11: these members in this order. */
function toJson({ id, title, content, status, createdAt }: Post): string {
  return JSON.stringify({ id, title, content, status, createdAt });
}
