/** Comments over REST (Spec §4.2, R7, R8, R11). */

import type { AddComment } from '../domain/comments.ts';
import { toId } from '../domain/scalars.ts';
import { readJson } from '../http/json.ts';
import { type Handler, jsonTextResponse } from '../http/message.ts';
import { getFound, getId, type RecordRoute } from '../records/records.ts';
import type { Comment, Post } from '../store/model.ts';
import type { Records } from '../store/store.ts';
import type { Access } from './access.ts';
import { decoderOf, type HandlerDeps, text } from './input.ts';
import { changeRecord } from './patches.ts';
import { getPost, postRoute } from './posts.ts';

const commentRoute: RecordRoute<string, CommentOfPost> = {
  key: '/comments',
  noun: 'comment',
  toId,
  find: findComment,
  toJson: (comment) => JSON.stringify(comment),
};

const decodeContent = decoderOf<{ content: string }>({ content: text });

export interface CommentDeps extends HandlerDeps {
  readonly addComment: AddComment;
  readonly access: Pick<Access, 'checkOwner'>;
}

export function createCommentHandlers(deps: CommentDeps) {
  const { store, addComment, access, records, config } = deps;
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

    find: records.find(commentRoute),

    remove: (request) =>
      changeRecord(request, {
        async get() {
          const found = await findComment(store, getId(request, commentRoute));
          const comment = getFound(found, commentRoute.noun);
          const post = await store.posts.find(comment.post.id);
          await access.checkOwner(request, post?.authorId ?? null);
          return comment;
        },
        toJson: commentRoute.toJson,
        apply: (id) => store.comments.remove(id),
      }),
  } satisfies Readonly<Record<string, Handler>>;
}

interface CommentOfPost {
  readonly id: string;
  readonly content: string;
  readonly post: Pick<Post, 'id' | 'title'>;
}

async function findComment(
  { comments, posts }: Pick<Records, 'comments' | 'posts'>,
  commentId: string,
): Promise<CommentOfPost | undefined> {
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
