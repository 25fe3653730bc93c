/** The schema as in the specification (Spec §2.1, §2.2, §4.1). Clients get this text unchanged. */

export const typeDefs = `"""
A String value of a field that carries it is returned in upper case. Other values pass through.
"""
directive @uppercase on FIELD_DEFINITION

"""
An ISO-8601 local date-time such as \`2024-05-01T10:15:00\`. An offset or a zone may be given; it is
dropped and shifts nothing.
"""
scalar LocalDateTime

"A UUID in its text form."
scalar UUID

"A file supplied through a GraphQL multipart request."
scalar Upload

enum PostStatus {
  DRAFT
  PENDING_MODERATION
  PUBLISHED
}

input CreatePostInput {
  title: String!
  content: String!
}

"What changes of a post; what is left out stays. A value is not null, and no text is blank."
input UpdatePostInput {
  title: String
  content: String
  status: PostStatus
}

input CommentInput {
  postId: String!
  content: String!
}

type Post {
  id: ID!
  title: String! @uppercase
  content: String
  """
  Oldest first; \`first\` and \`after\` as for \`allPosts\`. Null, with an error, where they do not
  fit into the result.
  """
  comments(first: Int, after: String): [Comment]
  status: PostStatus
  createdAt: LocalDateTime
  authorId: String
  author: Author
}

type Author {
  id: ID!
  name: String!
  email: String!
  createdAt: LocalDateTime
  "Newest first; otherwise as comments of a post."
  posts(first: Int, after: String): [Post]
}

type Comment {
  id: ID!
  content: String!
  createdAt: LocalDateTime
  postId: String!
}

"An account, which is the author of what it writes: the author with the same id."
type Account {
  id: ID!
  username: String!
  email: String!
  roles: [String!]!
}

type Query {
  """
  All posts, newest first; with \`first\`, so many of them, from 1 to 1000; with \`after\`, those
  behind the post with this id, also where it has been removed; with \`author\`, only those by the
  author with this id; with \`status\`, only those that have it.
  """
  allPosts(first: Int, after: ID, author: ID, status: PostStatus): [Post!]!
  "One post; null where no post has this id."
  postById(postId: String!): Post
  "The account of the token; null without one."
  me: Account
}

type Mutation {
  "Creates a post and returns its id."
  createPost(createPostInput: CreatePostInput!): UUID!
  "Changes a post and returns it."
  updatePost(id: ID!, changes: UpdatePostInput!): Post!
  "Removes a post with its comments and returns its id."
  deletePost(id: ID!): UUID!
  "Keeps the file and returns true."
  upload(file: Upload!): Boolean
  "Adds a comment to a post, tells all subscribers, and returns the comment's id."
  addComment(commentInput: CommentInput!): UUID!
  "Removes a comment and returns its id."
  deleteComment(id: ID!): UUID!
}

type Subscription {
  """
  Each comment that is added from now on: to one post, or to any post. With \`after\`, the id of a
  comment, first every comment that was stored after it; an error NOT_FOUND where there is none.
  """
  commentAdded(postId: String, after: String): Comment!
}
`;
