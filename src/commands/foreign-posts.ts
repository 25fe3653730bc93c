/**
 * Posts of other systems (R50). A line needs `title` and `content` alone:
 *
 *     {"key":"17","title":"Hello","content":"…","createdAt":"2012-03-04T05:06:07","author":"ann",
 *      "comments":[{"content":"Well said.","createdAt":"2012-03-04T06:00:00"}]}
 *
 * 1. An id has the time of `createdAt`, and a hash: of `key`, or else of title and content; of a
 *    comment, of its post and its members. What has no date takes that of its publication, or of
 *    its post, or else the first one of all, because a repetition has to have the same ids.
 * 2. What the line does not say is not compared with a record that is there.
 * 3. Equal comments of one post are numbered, so that each is kept.
 * 4. An author is an account's, whether that exists by now or is added later.
 */

import { decodePerson, toAccountId } from '../auth/accounts.ts';
import { deriveId } from '../domain/ids.ts';
import { toMilliseconds } from '../domain/local-date-time.ts';
import {
  aName,
  anyText,
  decoderOf,
  oneOf,
  optionalOrNull,
  type Rule,
  text,
} from '../handlers/decode.ts';
import { postStatuses } from '../records/list-query.ts';
import type { Comment, CommentStatus, JsonObject, Post, PostStatus } from '../store/model.ts';
import type { RecordOf, Table } from '../store/whole-store.ts';
import { aCommentStatus, fault, type KindName, kinds, noDate, parseDate } from './transfer.ts';

export interface Entry {
  readonly kind: KindName;
  readonly record: RecordOf[Table];
  /** Members that the input does not say. */
  readonly free: readonly string[];
}

type Maybe<T> = T | null | undefined;
interface ForeignPost {
  readonly title: string;
  readonly content: string;
  readonly key: Maybe<string>;
  readonly status: Maybe<PostStatus>;
  readonly createdAt: Maybe<string>;
  readonly publishedAt: Maybe<string>;
  readonly author: Maybe<string>;
  readonly comments: Maybe<readonly JsonObject[]>;
}
interface ForeignComment extends Pick<ForeignPost, 'content' | 'createdAt'> {
  readonly name: Maybe<string>;
  readonly status: Maybe<CommentStatus>;
}

const aDate: Rule = (value) =>
  typeof value === 'string' && parseDate(value) !== undefined ? undefined : noDate;
const aUsername: Rule = (username) => {
  const person = decodePerson({ username, email: '-', roles: [] });
  return typeof person === 'string' ? person : undefined;
};
const aList: Rule = (value) => (Array.isArray(value) ? undefined : 'must be an array');

const postRules: { readonly [M in keyof ForeignPost]: Rule } = {
  title: text,
  content: text,
  key: optionalOrNull(anyText),
  status: optionalOrNull(oneOf(postStatuses)),
  createdAt: optionalOrNull(aDate),
  publishedAt: optionalOrNull(aDate),
  author: optionalOrNull(aUsername),
  comments: optionalOrNull(aList),
};
const commentRules: { readonly [M in keyof ForeignComment]: Rule } = {
  content: text,
  createdAt: optionalOrNull(aDate),
  name: optionalOrNull(aName),
  status: optionalOrNull(aCommentStatus),
};
export const foreignMembers: readonly string[] = Object.keys(postRules);
const decodePost = decoderOf<ForeignPost>(postRules);
const decodeComment = decoderOf<ForeignComment>(commentRules);

const firstDate = '1970-01-01T00:00:00';

interface Given {
  /** When authors are made. */
  readonly now: string;
  /** The id of an account that is configured (R20). */
  readonly idOf: (username: string) => string | undefined;
}

/** Returns the author, the post and its comments. Throws `invalid_body`. */
export function decodeForeignPost(line: JsonObject, { now, idOf }: Given): readonly Entry[] {
  const { title, content, key, author, comments, ...given } = decodePost(line);
  const source = key == null ? [title, content] : [key];
  const publishedAt = toDate(given.publishedAt);
  const createdAt = toDate(given.createdAt) ?? publishedAt ?? firstDate;
  const id = toDerivedId(createdAt, ['post', ...source]);
  const status = given.status ?? (publishedAt === undefined ? 'DRAFT' : 'PUBLISHED');
  const authorId = author == null ? null : (idOf(author) ?? toAccountId(author));
  const post: Post = {
    id,
    title,
    content,
    status,
    createdAt,
    publishedAt: publishedAt ?? (status === 'PUBLISHED' ? createdAt : null),
    authorId,
  };
  const said = { publishedAt, status: given.status, authorId: author };
  const free = Object.entries(said).flatMap(([name, value]) => (value == null ? [name] : []));
  return [
    ...(authorId === null || author == null ? [] : [toAuthor(authorId, author, now)]),
    { kind: 'post', record: post, free },
    ...toComments(post, comments ?? []),
  ];
}

/** One that is there stays as it is. */
function toAuthor(id: string, name: string, createdAt: string): Entry {
  const record = { id, name, email: '', createdAt };
  return { kind: 'author', record, free: kinds.author.members };
}

function toComments(post: Post, given: readonly JsonObject[]): readonly Entry[] {
  const counts = new Map<string, number>();
  return given.map((line, at) => {
    const { content, name, status, ...said } = decodeIn(line, at);
    const createdAt = toDate(said.createdAt) ?? post.createdAt;
    const source = JSON.stringify([content, createdAt]);
    const count = counts.get(source) ?? 0;
    counts.set(source, count + 1);
    const record: Comment = {
      id: toDerivedId(createdAt, ['comment', post.id, source, count]),
      content,
      createdAt,
      postId: post.id,
      name: name ?? null,
      authorId: null,
    };
    const free = name == null ? ['name', 'authorId'] : ['authorId'];
    return { kind: status === 'PENDING' ? 'pending' : 'comment', record, free };
  });
}

/** What is wrong with a comment is named with its place. */
function decodeIn(line: JsonObject, at: number): ForeignComment {
  const unknown = findUnknown(line, Object.keys(commentRules));
  if (unknown !== undefined) throw fault(`/comments/${at}/${unknown}`, 'is no member of a comment');
  return decodeComment(line);
}

/** The first member with another name. */
export function findUnknown(line: JsonObject, names: readonly string[]): string | undefined {
  return Object.keys(line).find((name) => !names.includes(name));
}

function toDate(given: Maybe<string>): string | undefined {
  return given == null ? undefined : parseDate(given);
}

function toDerivedId(createdAt: string, source: readonly unknown[]): string {
  return deriveId(toMilliseconds(createdAt), JSON.stringify(source));
}
