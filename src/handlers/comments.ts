/** Comments over REST (Spec §4.2, R7, R8, R11). */

import type { AddComment } from '../domain/comments.ts';
import { toId } from '../domain/ids.ts';
import { readJson } from '../http/json.ts';
import { type Handler, jsonTextResponse } from '../http/message.ts';
import { getFound, getId } from '../records/records.ts';
import type { Comment } from '../store/model.ts';
import type { Records } from '../store/store.ts';
import { type RecordDeps, textsOf } from './input.ts';
import { getPost, postRoute } from './posts.ts';

const decodeContent = textsOf(['content']);

export function createCommentHandlers(deps: RecordDeps & { readonly addComment: AddComment }) {
  const { store, addComment, records, config } = deps;
  return {
    list: (request) => {
      const id = getId(request, postRoute);
      return records.list(request, {
        key: `/posts/${id}/comments`,
        list: async (read) => {
          await getPost(read, request);
          return read.comments.ofPost(id);
        },
        toJson: toItem,
        toId,
      });
    },

    add: async (request) => {
      const post = await getPost(store, request);
      const { content } = await readJson(request, config.bodyBytesMax, decodeContent);
      // The post may have been deleted while the body was received.
      const comment = getFound(await addComment(post.id, content), postRoute.noun);
      const response = jsonTextResponse(201, '[]');
      return { ...response, headers: [...response.headers, 'Location', `/comments/${comment.id}`] };
    },

    find: records.find({
      key: '/comments',
      noun: 'comment',
      toId,
      find: findComment,
      toJson: (comment) => JSON.stringify(comment),
    }),
  } satisfies Readonly<Record<string, Handler>>;
}

async function findComment({ comments, posts }: Records, commentId: string) {
  const comment = await comments.find(commentId);
  const post = comment && (await posts.find(comment.postId));
  if (comment === undefined || post === undefined) return undefined;
  const { id, content } = comment;
  return { id, content, post: { id: post.id, title: post.title } };
}

/** R11: the members in this order. */
function toItem({ id, content, createdAt }: Comment): string {
  return JSON.stringify({ id, content, createdAt });
}
