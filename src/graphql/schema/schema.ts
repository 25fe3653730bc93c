/**
 * The executable schema: the text of `type-defs.ts` with scalars, resolvers (Spec §4.1) and the
 * directive. Fields without a resolver return the property of the same name (rule 2). Objects and
 * long texts are charged to the context.
 */

import {
  assertObjectType,
  assertScalarType,
  buildSchema,
  defaultFieldResolver,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isObjectType,
} from 'graphql';
import { toId } from '../../domain/ids.ts';
import type { PostFilter, SeenComment } from '../../domain/readers.ts';
import { andThen } from '../../maybe-promise.ts';
import { invalidParameter, limitMax, oneId, oneLimit } from '../../records/list-query.ts';
import type { Range } from '../../store/store.ts';
import type { Author, Comment, CommentStatus, Post, PostStatus } from '../../store/model.ts';
import type { RequestContext } from '../context.ts';
import { mutations } from './mutations.ts';
import { scalarRules } from './scalars.ts';
import { typeDefs } from './type-defs.ts';

type FieldResolver = GraphQLFieldResolver<unknown, RequestContext>;

export function createSchema(): GraphQLSchema {
  const schema = buildSchema(typeDefs);
  for (const [name, rules] of Object.entries(scalarRules)) {
    Object.assign(assertScalarType(schema.getType(name)), rules);
  }
  for (const [typeName, fields] of Object.entries(resolvers)) {
    for (const [name, resolver] of Object.entries(fields)) {
      // The schema determines the source and the arguments of a resolver.
      fieldOf(schema, typeName, name).resolve = resolver as unknown as FieldResolver;
    }
  }
  // The arguments are those of each subscriber (`documents/own-arguments.ts`).
  fieldOf(schema, 'Subscription', 'commentAdded').subscribe = (_source, _args, { deps }) =>
    deps.commentAdded.subscribe();
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const directives = field.astNode?.directives ?? [];
      if (directives.some(({ name }) => name.value === 'uppercase')) applyUppercase(field);
    }
  }
  return schema;
}

/** Throws for a name that the schema does not have. */
function fieldOf(
  schema: GraphQLSchema,
  typeName: string,
  name: string,
): GraphQLField<unknown, RequestContext> {
  const field = assertObjectType(schema.getType(typeName)).getFields()[name];
  if (field === undefined) throw new Error(`The schema has no field ${typeName}.${name}.`);
  return field;
}

/** Wraps the resolver of a field that carries `@uppercase` (Spec §2.1). */
function applyUppercase(field: GraphQLField<unknown, RequestContext>): void {
  const { resolve = defaultFieldResolver } = field;
  field.resolve = (source, args, context, info) =>
    andThen<unknown, unknown>(resolve(source, args, context, info), (value) => {
      // Its length is charged with the record, before the new text is made.
      return typeof value === 'string' ? value.toUpperCase() : value;
    });
}

/** Type → field → resolver. The types of arguments follow from the schema, not from TypeScript. */
type Resolvers = Readonly<Record<string, Readonly<Record<string, Resolver>>>>;
/** The four parameters of graphql-js; a rest parameter would make an array for each call. */
type Resolver = (
  source: never,
  args: never,
  context: RequestContext,
  info: GraphQLResolveInfo,
) => unknown;

interface PageArgs {
  readonly first?: number | null;
  readonly after?: string | null;
}
interface PostsArgs extends PageArgs {
  readonly author?: string | null;
  readonly status?: PostStatus | null;
}
interface CommentsArgs extends PageArgs {
  readonly status?: CommentStatus | null;
}
const resolvers: Resolvers = {
  Query: {
    allPosts: (_, args: PostsArgs, context, info) =>
      context.readList(context.records.posts.list(toFilter(args)), info, toRange(args)),
    postById(_, { postId }: { readonly postId: string }, context, info) {
      const id = toId(postId);
      if (id === undefined) return null;
      context.chargeObject(info);
      return andThen(context.records.posts.find(id), (post) => context.chargeTexts(post, info));
    },
    comments: (_, args: CommentsArgs, context, info) => {
      const list = context.records.comments.all(args.status ?? undefined);
      return context.readList(list, info, toRange(args));
    },
    me(_source, _args, context, info) {
      context.isPersonal = true;
      context.chargeObject(info);
      return andThen(context.facts.viewer(), (viewer) => context.chargeTexts(viewer, info));
    },
  },

  Mutation: mutations,

  // The event is the comment.
  Subscription: {
    commentAdded: (comment: Comment, _, context, info) => context.chargeTexts(comment, info),
  },

  // The default takes longer, and these are resolved by the hundred.
  Post: {
    id: ({ id }: Post) => id,
    title: ({ title }: Post) => title,
    rawTitle: ({ title }: Post) => title,
    content: ({ content }: Post) => content,
    comments: (post: Post, args: PageArgs, context, info) =>
      context.readList(context.records.comments.ofPost(post), info, toRange(args)),
    // Charged with the post.
    author: ({ authorId }: Post, _, context) =>
      authorId === null ? null : context.records.authors.find(authorId),
  },

  Author: {
    posts: ({ id }: Author, args: PageArgs, context, info) =>
      context.readList(context.records.posts.list({ author: id }), info, toRange(args)),
  },

  Comment: {
    id: ({ id }: Comment) => id,
    content: ({ content }: Comment) => content,
    status: ({ status = 'PUBLISHED' }: SeenComment) => status,
    post: ({ postId }: Comment, _, context, info) =>
      andThen(context.records.posts.find(postId), (post) => context.chargeTexts(post, info)),
    author: ({ authorId }: Comment, _, context) =>
      authorId === null ? null : context.findAuthor(authorId),
  },
};

/** R37, R46. */
function toFilter({ author, status }: PostsArgs): PostFilter {
  return { author: toGivenId('author', author), status: status ?? undefined };
}

/** An empty text is none, as in REST (R14a). */
function toGivenId(name: string, text: string | null | undefined): string | undefined {
  const id = toId(text ?? '');
  if (id === undefined && text) throw invalidParameter(name, oneId);
  return id;
}

/** R14a. */
function toRange({ first, after: given }: PageArgs): Range {
  const after = toGivenId('after', given);
  const limit = first ?? undefined;
  if (limit !== undefined && (limit < 1 || limit > limitMax)) {
    throw invalidParameter('first', oneLimit);
  }
  return { limit, after };
}
