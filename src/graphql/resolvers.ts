/**
 * What stands behind each field (Spec §4.1). Fields without a resolver give the property of the
 * same name (rule 2). Whatever has an object or a long text in it is charged to the budget.
 */

import type { GraphQLResolveInfo } from 'graphql';
import { toId } from '../domain/ids.ts';
import { isBlank } from '../domain/text.ts';
import { AppError } from '../errors.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account, Author, Comment, Post } from '../store/model.ts';
import type { GraphqlContext } from './context.ts';
import { inSlices } from './slices.ts';
import type { UploadedFile } from './uploaded-file.ts';

/** Type → field → resolver. The schema, not TypeScript, decides what a resolver is called with. */
export type Resolvers = Readonly<Record<string, Readonly<Record<string, Resolver>>>>;
type Info = GraphQLResolveInfo;
type Resolver = (
  ...call: [source: never, args: never, context: GraphqlContext, info: Info]
) => unknown;

interface CreatePostArgs {
  readonly createPostInput: { readonly title: string; readonly content: string };
}
interface AddCommentArgs {
  readonly commentInput: { readonly postId: string; readonly content: string };
}

export const resolvers: Resolvers = {
  Query: {
    allPosts: (_source: unknown, _args: unknown, context) =>
      andThen(context.store.posts.list(), (posts) => inSlices(expectPosts(posts, context))),
    postById(_source: unknown, { postId }: { postId: string }, context) {
      const id = toId(postId);
      if (id === undefined) return null;
      context.charge(1);
      return context.store.posts.find(id);
    },
  },

  Mutation: { createPost, upload, addComment },

  Subscription: {
    // Each event is the comment itself.
    commentAdded: (comment: Comment) => comment,
  },

  Post: {
    title: ({ title }: Post, _args: unknown, context) => chargeText(title, context),
    content: ({ content }: Post, _args: unknown, context) => chargeText(content, context),
    comments: (post: Post, _args: unknown, context) =>
      andThen(context.loaders.comments(post), (comments) => {
        context.charge(comments.length);
        return inSlices(comments);
      }),
    author(post: Post, _args: unknown, context) {
      context.charge(1);
      return context.loaders.author(post);
    },
  },

  Author: {
    posts: (...[author, , context, { path }]: [Author, unknown, GraphqlContext, Info]) =>
      andThen(context.loaders.posts(author), (posts) => {
        context.charge(posts.length * costOfPostIn(listsAbove(path)));
        return inSlices(posts);
      }),
  },

  Comment: {
    content: ({ content }: Comment, _args: unknown, context) => chargeText(content, context),
  },
};

/** Where the events of a subscription come from. */
export const subscribers: Resolvers = {
  Subscription: {
    commentAdded: (_source: unknown, _args: unknown, { commentAdded }) => commentAdded.subscribe(),
  },
};

function createPost(
  _source: unknown,
  { createPostInput: { title, content } }: CreatePostArgs,
  context: GraphqlContext,
): MaybePromise<string> {
  return andThen(findWriter(context), (writer) => {
    refuseBlank('title', title);
    refuseBlank('content', content);
    const authorId = writer?.id ?? null;
    return andThen(context.store.posts.create({ title, content, authorId }), ({ id }) => id);
  });
}

function addComment(
  _source: unknown,
  { commentInput: { postId, content } }: AddCommentArgs,
  context: GraphqlContext,
): MaybePromise<string> {
  const id = toId(postId);
  return andThen(checkWriter(context), () => {
    if (id === undefined) throw noPost();
    // As in REST (R7), and as R24 has it: first the post, then what is said about it.
    if (isBlank(content)) return andThen(context.store.posts.find(id), refuseBlankComment);
    return andThen(context.comments.add(id, content), (comment) => {
      if (comment === undefined) throw noPost();
      return comment.id;
    });
  });
}

function refuseBlankComment(post: Post | undefined): never {
  throw post === undefined ? noPost() : blank('content');
}

/** Spec §4.1 rule 4, R19: one line in the log with what is known of the file. */
function upload(
  _source: unknown,
  { file }: { readonly file: UploadedFile },
  context: GraphqlContext,
): MaybePromise<boolean> {
  return andThen(checkWriter(context), () =>
    andThen(file.keep(), () => {
      context.log('info', 'file uploaded', { requestId: context.requestId, ...file.facts });
      return true;
    }),
  );
}

/** R23: who writes, where a token says so; a bad token is refused, also where none is needed. */
function findWriter(context: GraphqlContext): MaybePromise<Account | undefined> {
  return andThen(context.viewer(), (viewer) => {
    if (viewer === undefined && context.writesNeedToken) {
      throw new AppError('missing_token', 'This mutation needs a bearer token.');
    }
    return viewer;
  });
}

/** For mutations that do not note who writes: the token counts only where one is needed. */
function checkWriter(context: GraphqlContext): MaybePromise<unknown> {
  return context.writesNeedToken ? findWriter(context) : undefined;
}

/** R8. */
function refuseBlank(member: string, text: string): void {
  if (isBlank(text)) throw blank(member);
}

function blank(member: string): AppError {
  return new AppError('invalid_body', `The ${member} must not be blank.`);
}

function noPost(): AppError {
  return new AppError('not_found', 'There is no post with this id.');
}

function expectPosts(posts: readonly Post[], context: GraphqlContext): readonly Post[] {
  context.charge(posts.length);
  context.loaders.expectPosts(posts);
  return posts;
}

type Path = Info['path'];

/** Through how many lists a field was reached: each has an index in the path. */
function listsAbove(path: Path | undefined): number {
  let lists = 0;
  for (let at = path; at !== undefined; at = at.prev) if (typeof at.key === 'number') lists += 1;
  return lists;
}

/**
 * The one cycle of the schema is `author { posts { author …`. Its second round asks for the same
 * posts once more for each of them: it is dear, so that a third is refused before it takes time.
 */
function costOfPostIn(lists: number): number {
  return lists > 1 ? 10 : 1;
}

/** A text counts like an object for every so many characters of it … */
const textLengthOfObject = 1_024;
/** … and a short one not at all: it is paid for with the object that it belongs to. */
const shortTextLengthMax = 256;

function chargeText(text: string, context: GraphqlContext): string {
  if (text.length > shortTextLengthMax) context.charge(text.length / textLengthOfObject);
  return text;
}
