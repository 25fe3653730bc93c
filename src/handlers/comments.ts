/** Comments over REST (Spec §4.2, R7, R8, R11). */

import type { Config } from '../config.ts';
import type { CommentRules } from '../domain/comments.ts';
import { toId } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import { listReply } from '../http/json-list.ts';
import { readJson } from '../http/json.ts';
import { type Handler, jsonReply, jsonTextReply } from '../http/message.ts';
import type { Comment } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import { decodeTexts } from './input.ts';
import { getPost } from './posts.ts';

export interface CommentHandlers {
  readonly list: Handler;
  readonly add: Handler;
  readonly find: Handler;
}

export interface CommentDeps {
  readonly store: Store;
  readonly comments: CommentRules;
  readonly config: Pick<Config, 'bodyBytesMax'>;
}

export function createCommentHandlers({ store, comments, config }: CommentDeps): CommentHandlers {
  return {
    async list(request) {
      const post = await getPost(store, request);
      const found = (await store.comments.list(post.id)) ?? [];
      return listReply(found, toItem);
    },

    async add(request) {
      const post = await getPost(store, request);
      const { content } = decodeTexts(await readJson(request, config.bodyBytesMax), ['content']);
      const comment = await comments.add(post.id, content);
      // The post can have gone while the body was on its way.
      if (comment === undefined) throw new AppError('not_found', 'There is no post with this id.');
      const reply = jsonTextReply(201, '[]');
      return { ...reply, headers: [...reply.headers, 'Location', `/comments/${comment.id}`] };
    },

    async find(request) {
      const id = toId(request.params['id'] ?? '');
      const comment = id === undefined ? undefined : await store.comments.find(id);
      const post = comment && (await store.posts.find(comment.postId));
      if (comment === undefined || post === undefined) {
        throw new AppError('not_found', 'There is no comment with this id.');
      }
      const summary = { id: post.id, title: post.title };
      return jsonReply(200, { id: comment.id, content: comment.content, post: summary });
    },
  };
}

/** R11: these members in this order. */
function toItem({ id, content, createdAt }: Comment): string {
  return JSON.stringify({ id, content, createdAt });
}
