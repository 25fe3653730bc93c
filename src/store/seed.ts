/**
 * The initial records (R3). Todos and articles are required by the specification; authors, posts
 * and comments are examples. The ids are fixed, so that links to them work after every start.
 */

import type { Account, Article, Author, Comment, Post, Todo } from './model.ts';
import type { InitialData } from './store.ts';

const createdAt = '2026-01-05T09:00:00';

/** Spec §4.5: three todos, none completed (R3). */
const todos: readonly Todo[] = [
  { id: '019b8d5e-9c00-7000-8000-000000000301', title: 'Read the tour', completed: false },
  { id: '019b8d5e-9c00-7000-8000-000000000302', title: 'Write a first post', completed: false },
  { id: '019b8d5e-9c00-7000-8000-000000000303', title: 'Watch a comment arrive', completed: false },
];

/** Spec §2.5a: two articles with the ids 1 and 2. */
const articles = [
  {
    id: 1,
    title: 'On small servers',
    author: { givenName: 'Ada', familyName: 'Lovelace' },
    content: 'A server that one person can read is a server that one person can mend.',
    tags: ['servers', 'simplicity'],
    publishedAt: '2026-01-06T10:15:00',
  },
  {
    id: 2,
    title: 'On patches',
    author: { givenName: 'Grace', familyName: 'Hopper' },
    content: 'Say what changes, and leave the rest alone.',
    tags: ['http', 'json'],
    publishedAt: '2026-01-07T08:30:00',
  },
].map((article): Article => ({ id: article.id, json: JSON.stringify(article) }));

function author(number: number, name: string, email: string): Author {
  return { id: `019b8d5e-9c00-7000-8000-00000000000${number}`, name, email, createdAt };
}

const ada = author(1, 'Ada Lovelace', 'ada@example.org');
const grace = author(2, 'Grace Hopper', 'grace@example.org');

const posts = (
  [
    [ada, 'Hello, world', 'This post was here when the server started. Change it, or delete it.'],
    [grace, 'Hello, GraphQL', 'Ask for the fields that you need, and for nothing else.'],
    [ada, 'Hello, subscriptions', 'Open a socket, add a comment to this post, and see it arrive.'],
  ] as const
).map(([writer, title, content], at): Post => ({
  id: `019b8d5e-9c00-7000-8000-00000000010${at + 1}`,
  title,
  content,
  status: 'PUBLISHED',
  createdAt: `2026-01-0${at + 5}T09:00:00`,
  authorId: writer.id,
  publishedAt: `2026-01-0${at + 5}T09:00:00`,
}));

/** The comments, each with the number of its post. */
const comments = (
  [
    [1, 'Good to be here.'],
    [1, 'Hello to you, too.'],
    [2, 'No more and no less: I like that.'],
    [3, 'Listening.'],
  ] as const
).map(([post, content], at): Comment => ({
  id: `019b8d5e-9c00-7000-8000-00000000020${at + 1}`,
  content,
  createdAt: `2026-01-0${post + 4}T1${at + 1}:00:00`,
  postId: `019b8d5e-9c00-7000-8000-00000000010${post}`,
  name: null,
  authorId: null,
}));

/** R3, R20: every account is also an author with the same id. */
export function initialData(accounts: readonly Account[], demo: boolean): InitialData {
  const writers = accounts.map(({ id, username, email }) => {
    return { id, name: username, email, createdAt };
  });
  return {
    accounts,
    authors: demo ? [ada, grace, ...writers] : writers,
    posts: demo ? posts : [],
    comments: demo ? comments : [],
    todos,
    articles,
  };
}
