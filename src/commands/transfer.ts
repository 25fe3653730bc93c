/**
 * The format of `export` and `import` (R50): JSON Lines in UTF-8.
 *
 * 1. The first line is a header, and the last one says that nothing is missing.
 * 2. Each other line is a record: `kind`, and then its members in the order of `kinds`; one that
 *    is null is left out. Texts have the escapes of `JSON.stringify` alone.
 * 3. Kinds come in the order of `kinds`, files behind authors: what a record names is before it.
 *    Comments are last, because a transaction that adds comments lets no other one add any. The
 *    records of a kind come in the order stored; accounts, authors and posts by id.
 * 4. The content of a file follows it in pieces of `pieceBytes`, in base64.
 *
 *     {"format":"inkwell","version":1,"articleCounter":2}
 *     {"kind":"author","id":"018f…","name":"ann","email":"ann@example.org","createdAt":"2024-…"}
 *     {"kind":"file","name":"a.txt","size":5}
 *     {"kind":"content","base64":"aGVsbG8="}
 *     {"kind":"post","id":"0190…","title":"Hello","content":"…","status":"DRAFT",…}
 *     {"kind":"end"}
 */

import { decodePerson } from '../auth/accounts.ts';
import { parsePasswordHash } from '../auth/password.ts';
import { decodeArticleDraft } from '../domain/articles.ts';
import { toFileName } from '../domain/files.ts';
import { toId } from '../domain/ids.ts';
import { parseLocalDateTime } from '../domain/local-date-time.ts';
import { invalidBody } from '../errors.ts';
import {
  aName,
  anyText,
  decoderOf,
  flag,
  oneOf,
  optionalOrNull,
  type Rule,
  text,
} from '../handlers/decode.ts';
import { postStatuses } from '../records/list-query.ts';
import type { Account, Article, Comment, Json, JsonObject } from '../store/model.ts';
import type { RecordOf, Table } from '../store/whole-store.ts';

export const header = { format: 'inkwell', version: 1 } as const;
export const endLine = '{"kind":"end"}\n';
/** A multiple of three, so that only the last piece is padded. */
export const pieceBytes = 49_152;

export interface Kind<N extends Table = Table> {
  readonly table: N;
  /** In the order in which they are written. */
  readonly members: readonly string[];
  /** Returns the record of a line, all of whose members have a rule. Throws `invalid_body`. */
  readonly decode: (line: JsonObject, bytesMax: number) => RecordOf[N];
}

/** A text in the form that one parser returns for it. */
const canonical =
  (parse: (text: string) => string | undefined, message: string): Rule =>
  (value) =>
    typeof value === 'string' && parse(value) === value ? undefined : message;
const anId = canonical(toId, 'must be a UUID in lower case');
/** As a clock gives it: texts of years with a sign would have another order than their times. */
export const parseDate = (given: string): string | undefined =>
  /^\d/.test(given) ? parseLocalDateTime(given) : undefined;
export const noDate = 'must be a local date-time, such as 2024-05-01T10:15:00';
const aDate = canonical(parseDate, noDate);

function kindOf<N extends Table>(
  table: N,
  rules: { readonly [M in keyof RecordOf[N] & string]: Rule },
  check: (record: RecordOf[N]) => void = () => undefined,
): Kind<N> {
  const members = Object.keys(rules);
  const decode = decoderOf<RecordOf[N]>(rules);
  return {
    table,
    members,
    decode: (line) => {
      const record = decode(line);
      // One form for what is absent: null.
      for (const name of members) {
        if (line[name] === undefined) Object.assign(record, { [name]: null });
      }
      check(record);
      return record;
    },
  };
}

export const aCommentStatus = oneOf(['PENDING', 'PUBLISHED']);
const commentRules: { readonly [M in keyof Comment]: Rule } = {
  id: anId,
  postId: anId,
  content: text,
  createdAt: aDate,
  name: optionalOrNull(aName),
  authorId: optionalOrNull(anId),
};

/** Every kind of record; the members of each are written here alone. */
export const kinds = {
  account: {
    table: 'accounts',
    members: ['id', 'username', 'email', 'roles', 'passwordHash'],
    decode: decodeAccount,
  },
  author: kindOf('authors', { id: anId, name: anyText, email: anyText, createdAt: aDate }),
  todo: kindOf('todos', { id: anId, title: text, completed: flag }),
  article: { table: 'articles', members: ['document'], decode: decodeArticle },
  post: kindOf(
    'posts',
    {
      id: anId,
      title: text,
      content: text,
      status: oneOf(postStatuses),
      createdAt: aDate,
      publishedAt: optionalOrNull(aDate),
      authorId: optionalOrNull(anId),
    },
    ({ status, publishedAt }) => {
      if (status !== 'PUBLISHED' || publishedAt !== null) return;
      throw fault('/publishedAt', 'is required for a published post');
    },
  ),
  // Comments that wait (R48); a line says so by its status.
  pending: kindOf('pending_comments', commentRules),
  comment: kindOf('comments', commentRules),
} as const satisfies Readonly<Record<string, Kind>>;

export type KindName = keyof typeof kinds;

/** The record as a line, with its line feed. `omitted`: members that are left out. */
export function toLine(
  name: KindName,
  record: RecordOf[Table],
  omitted: readonly string[] = [],
): string {
  if ('json' in record) return `{"kind":"article","document":${record.json}}\n`;
  const values: Readonly<Record<string, unknown>> = { ...record };
  const isPending = name === 'pending';
  const line: Record<string, unknown> = { kind: isPending ? 'comment' : name };
  for (const member of kinds[name].members) {
    if (!omitted.includes(member)) line[member] = values[member] ?? undefined;
  }
  if (isPending) line['status'] = 'PENDING';
  return `${JSON.stringify(line)}\n`;
}

/** The kind of a line, and its members. Throws `invalid_body` for one that is not known. */
export function kindOfLine(name: Json, line: JsonObject): readonly [KindName, JsonObject] {
  const { status = 'PUBLISHED', ...members } = line;
  const known = typeof name === 'string' && Object.hasOwn(kinds, name) && name !== 'pending';
  if (!known) throw fault('/kind', name === 'content' ? 'follows no file' : 'is not known');
  if (name !== 'comment') return [name as KindName, line]; // it is one of them
  const message = aCommentStatus(status);
  if (message !== undefined) throw fault('/status', message);
  return [status === 'PENDING' ? 'pending' : 'comment', members];
}

function decodeAccount(line: JsonObject): Account {
  const { passwordHash, id, ...values } = line;
  const person = decodePerson(values);
  if (typeof person === 'string') throw fault('', person);
  if (id !== person.id) throw fault('/id', 'must be the id that the username has');
  if (typeof passwordHash !== 'string' || parsePasswordHash(passwordHash) === undefined) {
    throw fault('/passwordHash', 'must be a hash with scrypt');
  }
  return { ...person, passwordHash };
}

function decodeArticle({ document = null }: JsonObject, bytesMax: number): Article {
  const { id, json } = decodeArticleDraft(document, bytesMax);
  if (id === undefined) throw fault('/document/id', 'is required');
  return { id, json };
}

export interface FileLine {
  readonly name: string;
  readonly size: number;
  readonly owner?: string | null;
}

const aFileName: Rule = (value) =>
  // As uploads name them (R18): the last part of a path, composed.
  typeof value === 'string' && toFileName(value) === value && value.normalize() === value
    ? undefined
    : 'must be a file name of 1 to 255 bytes, without control characters, / and \\';
const aSize: Rule = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : 'must be a number of bytes';
export const fileMembers: readonly string[] = ['name', 'size', 'owner'];
export const decodeFile = decoderOf<FileLine>({
  name: aFileName,
  size: aSize,
  owner: optionalOrNull(anId),
});

export function toFileLine({ name, size, owner }: FileLine): string {
  return `${JSON.stringify({ kind: 'file', name, size, owner: owner ?? undefined })}\n`;
}

export function toPieceLine(piece: Buffer): string {
  return `{"kind":"content","base64":"${piece.toString('base64')}"}\n`;
}

/** Returns the bytes. Throws for what `toPieceLine` would not have written. */
export function decodePiece(base64: Json | undefined): Buffer {
  const bytes = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : Buffer.alloc(0);
  if (bytes.length === 0 || bytes.toString('base64') !== base64) {
    throw fault('/base64', 'must be bytes in base64');
  }
  return bytes;
}

export function fault(pointer: string, message: string): Error {
  return invalidBody([{ pointer, message }]);
}
