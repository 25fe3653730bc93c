/** The mutations (Spec §4.1, R19, R23, R46). Rules, owners and errors are those of REST. */

import type { GraphQLResolveInfo } from 'graphql';
import { type CommentDraft, faultOfName } from '../../domain/comments.ts';
import { toId } from '../../domain/ids.ts';
import { checkOwner, type SeenComment } from '../../domain/readers.ts';
import { AppError, codeOf } from '../../errors.ts';
import { toOnce } from '../../http/idempotency.ts';
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Account, Post } from '../../store/model.ts';
import { changeUnlessDone, isRepeated } from '../../store/once.ts';
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
  approveComment,
  deleteComment,
};

/** Each is a line of the log (R53), as `watch/monitor.ts` has it for REST. */
export const mutations = Object.fromEntries(
  Object.entries(all).map(([action, mutate]): [string, Mutate] => [action, toLogged(mutate)]),
);

function toLogged(mutate: Mutate): Mutate {
  return (source, args: { readonly id?: string; readonly file?: UploadedFile }, context, info) => {
    const { replays } = context;
    const named = args.file?.storedName;
    const done = mutate(source, args as never, context, info);
    const logged = andThen(done, (result) => {
      const id = typeof result === 'string' ? result : (Object(result) as Partial<Post>).id;
      if (context.replays === replays) logDeed(context, info, named ?? id);
      return result;
    });
    if (!isPromise(logged)) return logged; // nothing that may be forbidden answers at once
    return logged.catch((error: unknown) => {
      if (codeOf(error) === 'forbidden') logDeed(context, info, named ?? args.id, 'refused');
      throw error;
    });
  };
}

function logDeed(
  { account, deps, facts }: RequestContext,
  { fieldName: action }: GraphQLResolveInfo,
  id: string | undefined,
  event: 'change' | 'refused' = 'change',
): void {
  const { requestId, client } = facts;
  const said = { account, client: client?.(), action, id, requestId };
  deps.log(event === 'refused' ? 'warn' : 'info', event, said);
}

/** An argument with required texts as its members. */
type Input<Name extends string, Member extends string> = Record<Name, Record<Member, string>>;

function createPost(
  _: unknown,
  { createPostInput: { title, content } }: Input<'createPostInput', 'title' | 'content'>,
  context: RequestContext,
): MaybePromise<string> {
  return andThen(findWriter(context), (writer) => {
    refuseBlank('title', title);
    refuseBlank('content', content);
    const draft = { title, content, authorId: writer?.id ?? null };
    return andThen(context.deps.store.posts.create(draft, onceOf(context, writer)), (post) => {
      noteReplay(context, post);
      return post.id;
    });
  });
}

async function addComment(
  _: unknown,
  { commentInput }: { readonly commentInput: CommentDraft },
  context: RequestContext,
): Promise<string> {
  const { deps, reader, records, facts } = context;
  const account = await findWriter(context, deps.commentsNeedToken);
  const once = onceOf(context, account);
  const postId = toId(commentInput.postId);
  if (postId === undefined) throw notFound('post');
  // As in REST (R7, R24): the post is looked up before what is wrong with the input is refused.
  const { content, name } = commentInput;
  const fault = faultOfInput(content, name);
  const commenter = { reader, account, client: facts.client ?? (() => '') };
  if (fault !== undefined && (await records.posts.find(postId))) {
    throw new AppError('invalid_body', fault);
  }
  const draft = { postId, content, name };
  const added = fault === undefined ? await deps.addComment(commenter, draft, once) : undefined;
  if (added === undefined) throw notFound('post');
  noteReplay(context, added);
  if (added.isPending === true) context.pendingComments.push(added.id);
  return added.id;
}

function faultOfInput(content: string, name: CommentDraft['name']): string | undefined {
  if (content.trim() === '') return 'The content must not be blank.';
  const fault = name == null ? undefined : faultOfName(name);
  return fault && `The name ${fault}.`;
}

/** Spec §4.1 rule 4, R19: the upload is logged with the six values of the file. */
async function upload(
  _: unknown,
  { file }: { readonly file: UploadedFile },
  context: RequestContext,
): Promise<boolean> {
  const writer = await findWriter(context);
  const { reader } = context;
  const repeated = await file.store({
    once: onceOf(context, writer),
    owner: writer?.id,
    check: (replaced) => {
      for (const before of replaced) checkOwner(reader, before.owner);
    },
  });
  if (repeated !== undefined) {
    noteReplay(context, repeated);
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
    // Null is what some clients write for what is not given (GraphQL §2.9.5).
    const given = Object.entries(changes).filter(([, value]) => value !== null);
    for (const [member, value] of given) refuseBlank(member, String(value));
    const change: Partial<PostMembers> = Object.fromEntries(given);
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

/** As `PATCH /comments/{id}` (R48). Returns the comment as it is then. */
async function approveComment(
  _: unknown,
  { id }: { readonly id: string },
  context: RequestContext,
  info: GraphQLResolveInfo,
): Promise<SeenComment> {
  context.chargeObject(info);
  const commentId = await changeOnce(context, { noun: 'comment', id }, async (options) => {
    for (;;) {
      // False: another one has approved it meanwhile, or removed it.
      const { id: found } = await findOnOwnPost(context, id);
      const approved = await context.deps.store.comments.approve(found, options);
      if (approved !== false) return approved;
    }
  });
  const approved = await context.records.comments.find(commentId);
  if (approved === undefined) throw notFound('comment');
  return context.chargeTexts(approved, info);
}

async function deleteComment(
  _: unknown,
  { id }: { readonly id: string },
  context: RequestContext,
): Promise<string> {
  return changeOnce(context, { noun: 'comment', id }, async (options) => {
    const { id: found } = await findOnOwnPost(context, id);
    return context.deps.store.comments.remove([found], options);
  });
}

/** Returns a comment on a post that the account of the token may change (R36). */
async function findOnOwnPost({ records, reader }: RequestContext, id: string) {
  const commentId = toId(id);
  const comment = commentId && (await records.comments.find(commentId));
  if (!comment) throw notFound('comment');
  const post = await records.posts.find(comment.postId);
  checkOwner(reader, post?.authorId ?? null);
  return comment;
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
  noteReplay(context, changed);
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
function findWriter(
  context: RequestContext,
  needsToken = context.deps.writesNeedToken,
): MaybePromise<Account | undefined> {
  return andThen(context.facts.viewer(), (viewer) => {
    if (viewer === undefined && needsToken) {
      throw new AppError('missing_token', 'This mutation needs a bearer token.');
    }
    context.account = viewer?.username;
    return viewer;
  });
}

/** The write of a mutation under the key of the operation, if any (R40). */
function onceOf({ once }: RequestContext, writer: Account | undefined): Once | undefined {
  return once && toOnce(writer, once.key, once.fingerprint);
}

/** Call it with what the store has returned for a write. */
function noteReplay(context: RequestContext, result: unknown): void {
  if (isRepeated(result)) context.replays += 1;
}

/**
 * For mutations without an author: the token is checked only if writing needs one or the request
 * has a key, which belongs to the account of the token.
 */
async function beginWrite(context: RequestContext): Promise<Once | undefined> {
  if (context.once === undefined && !context.deps.writesNeedToken) return undefined;
  return onceOf(context, await findWriter(context));
}

/** R8. */
function refuseBlank(member: string, text: string): void {
  if (text.trim() === '') throw new AppError('invalid_body', `The ${member} must not be blank.`);
}

function notFound(noun: string): AppError {
  return new AppError('not_found', `There is no ${noun} with this id.`);
}
