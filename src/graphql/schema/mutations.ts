/** The mutations (Spec §4.1, R19, R23, R46). Rules, owners and errors are those of REST. */

import type { GraphQLResolveInfo } from 'graphql';
import { toId } from '../../domain/ids.ts';
import { checkOwner } from '../../domain/readers.ts';
import { AppError } from '../../errors.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { Account, Post } from '../../store/model.ts';
import { changeUnlessDone } from '../../store/once.ts';
import type { Changed, ChangeOptions, Once, PostMembers } from '../../store/store.ts';
import type { RequestContext } from '../context.ts';
import type { UploadedFile } from './scalars.ts';

type Mutate = (
  source: unknown,
  args: never,
  context: RequestContext,
  info: GraphQLResolveInfo,
) => MaybePromise<unknown>;

const all: Readonly<Record<string, Mutate>> = {
  createPost,
  updatePost,
  deletePost,
  upload,
  addComment,
  deleteComment,
};

/** A change by an account is a line of the log, as `watch/monitor.ts` has it for REST. */
export const mutations = Object.fromEntries(
  Object.entries(all).map(([action, mutate]): [string, Mutate] => [
    action,
    (source, args, context, info) => {
      const replays = context.writes?.replays;
      return andThen(mutate(source, args, context, info), (result) => {
        const { account, deps, facts, writes } = context;
        if (account === undefined || writes?.replays !== replays) return result;
        const id = typeof result === 'string' ? result : (Object(result) as Partial<Post>).id;
        const { requestId } = facts;
        deps.log('info', 'change', { account, action, id, requestId });
        return result;
      });
    },
  ]),
);

/** An argument with required texts as its members. */
type Input<Name extends string, Member extends string> = Record<Name, Record<Member, string>>;

function createPost(
  _: unknown,
  { createPostInput: { title, content } }: Input<'createPostInput', 'title' | 'content'>,
  context: RequestContext,
): MaybePromise<string> {
  return andThen(nextOnce(context), (once) =>
    andThen(findWriter(context), (writer) => {
      refuseBlank('title', title);
      refuseBlank('content', content);
      const draft = { title, content, authorId: writer?.id ?? null };
      return andThen(context.deps.store.posts.create(draft, once), (post) => {
        context.writes?.note(post);
        return post.id;
      });
    }),
  );
}

async function addComment(
  _: unknown,
  { commentInput: { postId, content } }: Input<'commentInput', 'postId' | 'content'>,
  context: RequestContext,
): Promise<string> {
  const once = await beginWrite(context);
  const id = toId(postId);
  if (id === undefined) throw notFound('post');
  const { deps, reader, records } = context;
  // As in REST (R7, R24): the post is looked up before blank content is refused.
  const isBlank = content.trim() === '';
  const add = () => deps.addComment(reader, id, content, once);
  const added = await (isBlank ? records.posts.find(id) : add());
  if (added === undefined) throw notFound('post');
  refuseBlank('content', content);
  context.writes?.note(added);
  return added.id;
}

/** Spec §4.1 rule 4, R19: the upload is logged with the six values of the file. */
async function upload(
  _: unknown,
  { file }: { readonly file: UploadedFile },
  context: RequestContext,
): Promise<boolean> {
  const repeated = await file.store(await beginWrite(context));
  if (repeated !== undefined) {
    context.writes?.note(repeated);
    return true;
  }
  const { requestId } = context.facts;
  context.deps.log('info', 'file uploaded', { requestId, ...file.facts });
  return true;
}

interface UpdateArgs {
  readonly id: string;
  readonly changes: { readonly [M in keyof PostMembers]?: PostMembers[M] | null };
}

/** As `PATCH /posts/{id}` (R37). Returns the post as it is then. */
async function updatePost(
  _: unknown,
  { id, changes }: UpdateArgs,
  context: RequestContext,
  info: GraphQLResolveInfo,
): Promise<Post> {
  context.chargeObject(info);
  const postId = await changeOnce(context, { noun: 'post', id }, async (options) => {
    const post = await findOwn(context, id);
    const { title, content, status } = changes;
    for (const [member, value] of Object.entries(changes)) refuseBlank(member, value ?? '');
    const change = { title, content, status } as Partial<PostMembers>; // null was refused
    return context.deps.store.posts.update(post.id, change, options);
  });
  const changed = await context.records.posts.find(postId);
  if (changed === undefined) throw notFound('post');
  return context.chargeTexts(changed, info);
}

async function deletePost(
  _: unknown,
  { id }: { readonly id: string },
  context: RequestContext,
): Promise<string> {
  return changeOnce(context, { noun: 'post', id }, async (options) => {
    const post = await findOwn(context, id);
    return context.deps.store.posts.remove(post.id, options);
  });
}

async function deleteComment(
  _: unknown,
  { id }: { readonly id: string },
  context: RequestContext,
): Promise<string> {
  return changeOnce(context, { noun: 'comment', id }, async (options) => {
    const { comments, posts } = context.records;
    const commentId = toId(id);
    const comment = commentId && (await comments.find(commentId));
    if (!comment) throw notFound('comment');
    const post = await posts.find(comment.postId);
    checkOwner(context.reader, post?.authorId ?? null);
    return context.deps.store.comments.remove(comment.id, options);
  });
}

/**
 * Begins a write, and does the change unless it was done before (R40): then nothing is checked.
 * Returns the canonical id. Of the change false means that there is no such record.
 */
async function changeOnce(
  context: RequestContext,
  { noun, id }: { readonly noun: string; readonly id: string },
  change: (options: Pick<ChangeOptions<object>, 'once' | 'askedAt'>) => Promise<Changed>,
): Promise<string> {
  const askedAt = performance.now();
  const once = await beginWrite(context);
  const act = async () => change({ once, askedAt });
  const { requests } = context.deps.store;
  const changed = await (once === undefined ? act() : changeUnlessDone(once, requests, act));
  if (changed === false) throw notFound(noun);
  context.writes?.note(changed);
  return toId(id) ?? id;
}

/** Returns a post that the account of the token may change (R36). */
async function findOwn(context: RequestContext, postId: string): Promise<Post> {
  const id = toId(postId);
  const post = id && (await context.records.posts.find(id));
  if (!post) throw notFound('post');
  checkOwner(context.reader, post.authorId);
  return post;
}

/** R23: the author is the account of the token. An invalid token is always refused. */
function findWriter(context: RequestContext): MaybePromise<Account | undefined> {
  return andThen(context.facts.viewer(), (viewer) => {
    if (viewer === undefined && context.deps.writesNeedToken) {
      throw new AppError('missing_token', 'This mutation needs a bearer token.');
    }
    context.account = viewer?.username;
    return viewer;
  });
}

/** Call it when a mutation begins: its write under the key of the operation, if any (R40). */
function nextOnce(context: RequestContext): MaybePromise<Once | undefined> {
  return context.writes?.next(async () => findWriter(context));
}

/**
 * As `nextOnce`, for mutations without an author: the token is checked only if writing needs one or
 * the request has a key, which belongs to the account of the token.
 */
async function beginWrite(context: RequestContext): Promise<Once | undefined> {
  const once = context.writes && (await nextOnce(context));
  if (once === undefined && context.deps.writesNeedToken) await findWriter(context);
  return once;
}

/** R8. */
function refuseBlank(member: string, text: string): void {
  if (text.trim() === '') throw new AppError('invalid_body', `The ${member} must not be blank.`);
}

function notFound(noun: string): AppError {
  return new AppError('not_found', `There is no ${noun} with this id.`);
}
