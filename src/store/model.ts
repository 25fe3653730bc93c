/** The records of the service. They are immutable: a change creates a new record. */

/** Spec §2.1. New posts are drafts (R11). */
export type PostStatus = 'DRAFT' | 'PENDING_MODERATION' | 'PUBLISHED';

export interface Post {
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly status: PostStatus;
  /** Local date-time, as `domain/local-date-time.ts` writes it. */
  readonly createdAt: string;
  readonly authorId: string | null;
  /** When the status became `PUBLISHED` for the first time (R49). */
  readonly publishedAt: string | null;
}

/** R48. */
export type CommentStatus = 'PENDING' | 'PUBLISHED';

export interface Comment {
  readonly id: string;
  readonly content: string;
  readonly createdAt: string;
  readonly postId: string;
  /** The name that its writer gave (R48). */
  readonly name: string | null;
  /** The account that wrote it; null if that was done without a token. */
  readonly authorId: string | null;
}

export interface Author {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly createdAt: string;
}

/** An account that can log in. It is also an author with the same id (R20). */
export interface Account {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly roles: readonly string[];
  /** `scrypt$N$r$p$salt$hash`, as `auth/password.ts` writes it. Never leaves the process. */
  readonly passwordHash: string;
}

export interface Todo {
  readonly id: string;
  readonly title: string;
  readonly completed: boolean;
}

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/**
 * An open document (R14): `title` is required, known members have their types, unknown members are
 * kept as sent. It is stored and sent as text; as a value it could take 20 times the memory.
 */
export interface Article {
  /** The id, which is also a member of the document. */
  readonly id: number;
  /** The JSON text of the document. */
  readonly json: string;
}

/** An article that may not have an id yet; then the store adds the member. */
export interface ArticleDraft {
  readonly id: number | undefined;
  readonly json: string;
}
