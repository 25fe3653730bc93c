/** Comments over REST (Spec §4.2, R7, R8, R11). */

import type { Config } from '../config.ts';
import type { CommentRules } from '../domain/comments.ts';
import { toId } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import type { AnswerCache } from '../http/answer-cache.ts';
import { taggedReply } from '../http/etag.ts';
import type { ReplyWithList } from '../http/json-list.ts';
import { replyWithList } from '../http/list-pages.ts';
import { readJson } from '../http/json.ts';
import { type Handler, jsonTextReply } from '../http/message.ts';
import { andThen } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import type { Reading } from '../store/reading.ts';
import type { Records, Store } from '../store/store.ts';
import { decodeTexts } from './input.ts';
import { getPost, noPost } from './posts.ts';

export interface CommentDeps {
  readonly store: Store;
  readonly comments: CommentRules;
  readonly answers: AnswerCache<Reading>;
  readonly listReply: ReplyWithList<Reading>;
  readonly config: Pick<Config, 'bodyBytesMax'>;
}

export type CommentHandlers = Readonly<Record<'list' | 'add' | 'find', Handler>>;

export function createCommentHandlers(deps: CommentDeps): CommentHandlers {
  const { store, comments, answers, listReply, config } = deps;
  return {
    list(request) {
      const id = toId(request.params['id'] ?? '');
      if (id === undefined) throw noPost();
      return replyWithList(request, listReply, {
        key: `GET /posts/${id}/comments`,
        list: (records) => andThen(getPost(records, request), () => records.comments.ofPost(id)),
        toJson: toItem,
        toId,
      });
    },

    async add(request) {
      const post = await getPost(store, request);
      const { content } = decodeTexts(await readJson(request, config.bodyBytesMax), ['content']);
      const comment = await comments.add(post.id, content);
      // The post can have gone while the body was on its way.
      if (comment === undefined) throw noPost();
      const reply = jsonTextReply(201, '[]');
      return { ...reply, headers: [...reply.headers, 'Location', `/comments/${comment.id}`] };
    },

    find(request) {
      const id = toId(request.params['id'] ?? '');
      if (id === undefined) throw noComment();
      return answers.get(`GET /comments/${id}`, async (records, keep) =>
        keep(taggedReply(JSON.stringify(await findComment(records, id)))),
      );
    },
  };
}

async function findComment({ comments, posts }: Records, commentId: string): Promise<object> {
  const comment = await comments.find(commentId);
  const post = comment && (await posts.find(comment.postId));
  if (comment === undefined || post === undefined) throw noComment();
  const { id, content } = comment;
  return { id, content, post: { id: post.id, title: post.title } };
}

function noComment(): AppError {
  return new AppError('not_found', 'There is no comment with this id.');
}

/** R11: these members in this order. */
function toItem({ id, content, createdAt }: Comment): string {
  return JSON.stringify({ id, content, createdAt });
}
