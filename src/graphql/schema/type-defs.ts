/**
 * The schema as in the specification (Spec §2.1, §2.2, §4.1). Clients get this text unchanged, and
 * the browser UI shows each description; one that is short stands before what it describes.
 */

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

"How far a post has come. A server may hide it from others until it is PUBLISHED."
enum PostStatus {
  "Being written; each new post is a draft." DRAFT
  "Waits for a decision whether it is published." PENDING_MODERATION
  "Meant for all readers." PUBLISHED
}

"A new post."
input CreatePostInput {
  "Its title, with at least one character that is not white space." title: String!
  "Its text, with at least one character that is not white space." content: String!
}

"What changes of a post; what is left out, or null, stays. No text is blank."
input UpdatePostInput {
  "The new title." title: String
  "The new text." content: String
  "The new status." status: PostStatus
}

"A new comment."
input CommentInput {
  "The id of the post that the comment belongs to." postId: String!
  "Its text, with at least one character that is not white space." content: String!
  "The name of who writes it: one line of at most 100 characters." name: String
}

"Whether readers see a comment."
enum CommentStatus {
  "Waits for the post's author, or an administrator, who alone see it." PENDING
  "For all who read the post." PUBLISHED
}

"A text of the blog."
type Post {
  "A UUID." id: ID!
  "In upper case, however it was written." title: String! @uppercase
  "The title as it was written." rawTitle: String!
  "The text as it was written." content: String
  "Its comments, oldest first. Null, with an error, where they do not fit into the result."
  comments(
    "So many of them, from 1 to 1000; without it, all." first: Int
    "Only those behind the comment with this id, also where that has been removed." after: String
  ): [Comment]
  "How far the post has come." status: PostStatus
  "When the post was created, in UTC." createdAt: LocalDateTime
  "When it became PUBLISHED for the first time, in UTC; null before." publishedAt: LocalDateTime
  "The id of its author; null where the post was created without a token." authorId: String
  "Who created the post; null where that was done without a token." author: Author
}

"Somebody who writes posts."
type Author {
  "A UUID, which is also the id of the author's account." id: ID!
  "The name that readers see." name: String!
  "An email address." email: String!
  "When the author was created, in UTC." createdAt: LocalDateTime
  "The author's posts, newest first. Null, with an error, where they do not fit into the result."
  posts(
    "So many of them, from 1 to 1000; without it, all." first: Int
    "Only those behind the post with this id, also where that has been removed." after: String
  ): [Post]
}

"What a reader says about a post."
type Comment {
  "A UUID." id: ID!
  "The text as it was written." content: String!
  "When the comment was added, in UTC." createdAt: LocalDateTime
  "The id of the post that the comment belongs to." postId: String!
  "The name that its writer gave." name: String
  "The account that wrote it; null where that was done without a token." author: Author
  "Whether readers see it." status: CommentStatus!
  "The post that the comment belongs to." post: Post
}

"An account, which is the author of what it writes: the author with the same id."
type Account {
  "A UUID." id: ID!
  "The name to log in with." username: String!
  "An email address." email: String!
  "USER, and ADMIN for an account that may change what others have written." roles: [String!]!
}

"What can be read."
type Query {
  "All posts, newest first, or those that the arguments choose; published ones by publishedAt."
  allPosts(
    "So many of them, from 1 to 1000; without it, all." first: Int
    "Only those behind the post with this id, also where that has been removed." after: ID
    "Only those by the author with this id." author: ID
    "Only those that have this status." status: PostStatus
  ): [Post!]!
  "One post; null where no post has this id."
  postById("The id of the post." postId: String!): Post
  """
  Comments of all posts, newest first. Who may approve comments also gets those that wait, before
  all others.
  """
  comments(
    "So many of them, from 1 to 1000; without it, all." first: Int
    "Only those behind the comment with this id, also where that has been removed." after: ID
    "Only those that have this status." status: CommentStatus
  ): [Comment!]!
  "The account of the token; null without one."
  me: Account
}

"What can be changed."
type Mutation {
  "Creates a post and returns its id."
  createPost("What to create." createPostInput: CreatePostInput!): UUID!
  "Changes a post and returns it."
  updatePost("The id of the post." id: ID!, "What to change." changes: UpdatePostInput!): Post!
  "Removes a post with its comments and returns its id."
  deletePost("The id of the post." id: ID!): UUID!
  "Keeps the file and returns true."
  upload("The file." file: Upload!): Boolean
  "Adds a comment to a post, tells all subscribers, and returns the comment's id."
  addComment("What to add, and to which post." commentInput: CommentInput!): UUID!
  "Lets all readers see a comment, and returns it."
  approveComment("The id of the comment." id: ID!): Comment!
  "Removes a comment and returns its id."
  deleteComment("The id of the comment." id: ID!): UUID!
}

"What is sent when it happens."
type Subscription {
  "Each comment that is added from now on."
  commentAdded(
    "Only comments on the post with this id." postId: String
    """
    The id of a comment: first every comment that was stored after it; an error NOT_FOUND where
    there is none with this id.
    """
    after: String
  ): Comment!
}
`;
