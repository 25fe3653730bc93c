/** Comments over REST (Spec §4.2, R7, R8, R11). */

import type { ReaderHandler } from '../auth/access.ts';
import { toId } from '../domain/ids.ts';
import { checkOwner, type Records } from '../domain/readers.ts';
import { readJson } from '../http/json.ts';
import type { HttpRequest } from '../http/message.ts';
import { getFound, getId, getRecord, type RecordRoute } from '../records/record-responses.ts';
import type { Comment } from '../store/model.ts';
import { changeRecord } from './changes.ts';
import { decoderOf, text } from './decode.ts';
import type { HandlerDeps } from './deps.ts';
import { findOnce, toWritten } from './once.ts';
import { postRoute } from './posts.ts';

type CommentOfPost = NonNullable<Awaited<ReturnType<typeof findComment>>>;

const commentRoute: RecordRoute<string, CommentOfPost> = {
  key: '/comments',
  noun: 'comment',
  toId,
  find: findComment,
  toJson: (comment) => JSON.stringify(comment),
};

const decodeContent = decoderOf<{ content: string }>({ content: text });

type CommentDeps = Pick<
  HandlerDeps,
  'store' | 'addComment' | 'viewerOf' | 'readerOf' | 'responses' | 'records' | 'config'
>;

export function createCommentHandlers(deps: CommentDeps) {
  const { store, addComment, viewerOf, readerOf, responses, records, config } = deps;

  /** R36: throws 403 for a comment on the post of another author. */
  const get = async (request: HttpRequest): Promise<CommentOfPost> => {
    const seen = responses.read(await readerOf(request));
    const comment = await getRecord(seen, request, commentRoute);
    const post = await seen.posts.find(comment.post.id);
    checkOwner(seen.reader, post?.authorId ?? null);
    return comment;
  };

  const created = records.created(commentRoute, readerOf, '[]');

  return {
    list: (request, reader) => {
      const id = getId(request, postRoute);
      return records.list(request, reader, {
        key: `/posts/${id}/comments`,
        list: async (seen) => seen.comments.ofPost(await getRecord(seen, request, postRoute)),
        members: ['id', 'content', 'createdAt'],
        toJson: toItem,
        toId,
      });
    },
    add: async (request) => {
      const id = getId(request, postRoute);
      const reader = await readerOf(request);
      const refuse = async (error: unknown): Promise<never> => {
        // If the post does not exist, 404 comes before any fault of the body.
        await getRecord(responses.read(reader), request, postRoute);
        throw error;
      };
      const body = readJson(request, config.bodyBytesMax, decodeContent);
      const { content } = await body.catch(refuse);
      const once = await findOnce(request, viewerOf);
      const comment = getFound(await addComment(reader, id, content, once), postRoute.noun);
      const response = await created(request, comment.id, `/comments/${comment.id}`);
      return toWritten(response, comment);
    },
    find: records.find(commentRoute),
    remove: (request) =>
      changeRecord(request, { ...commentRoute, get, viewerOf, store }, (id, options) =>
        store.comments.remove(id, options),
      ),
  } satisfies Readonly<Record<string, ReaderHandler>>;
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
