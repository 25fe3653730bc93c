// Apollo Client 4: prints the comments of the newest post, and adds each line that is typed, whatever gets lost.
// npm install @apollo/client rxjs graphql graphql-ws
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { RetryLink } from '@apollo/client/link/retry';
import { OperationTypeNode } from 'graphql';
import { map } from 'rxjs';
import { fetchInTime, getToken, server } from './login.mjs';
import { adding, follow, loading, onLine } from './resume.mjs';

// Before the link that repeats: all attempts of a mutation have its key.
const key = new SetContextLink(({ headers }, { operationType }) =>
  operationType === OperationTypeNode.MUTATION
    ? { headers: { ...headers, 'idempotency-key': crypto.randomUUID() } }
    : {},
);
// No answer, 5xx, and a key whose first attempt is under way. Any other answer is final.
const retry = new RetryLink({
  attempts: { max: Infinity, retryIf: ({ statusCode = 500 }) => statusCode >= 500 },
  delay: { initial: 100, max: 10_000, jitter: true },
});
// Behind it: each attempt has a token that is valid.
const token = new SetContextLink(async ({ headers }) => ({
  headers: { ...headers, authorization: `Bearer ${await getToken()}` },
}));
// An error in a result is no failure for the link that repeats.
const unavailable = new ApolloLink((operation, forward) =>
  forward(operation).pipe(
    map((result) => {
      const error = result.errors?.find(({ extensions }) => extensions?.code === 'UNAVAILABLE');
      if (error !== undefined) throw new Error(error.message);
      return result;
    }),
  ),
);
const http = new HttpLink({ uri: `${server}/graphql`, fetch: fetchInTime });
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.from([key, retry, token, unavailable, http]),
});

const query = gql(loading);
let printed = 0;
client.watchQuery({ query, fetchPolicy: 'cache-only' }).subscribe(({ data }) => {
  const { comments = [] } = data?.allPosts?.[0] ?? {};
  for (const { content } of comments.slice(printed)) console.log(content);
  printed = comments.length;
});

async function load() {
  const { data } = await client.query({ query, fetchPolicy: 'network-only' });
  return data.allPosts[0];
}

function show({ id, content, postId }) {
  client.cache.updateQuery({ query }, ({ allPosts: [post] }) => {
    const comments = [...post.comments, { __typename: 'Comment', id, content }];
    return postId === post.id ? { allPosts: [{ ...post, comments }] } : undefined;
  });
}

const { id: postId, comments } = await load();
onLine((content) =>
  client.mutate({ mutation: gql(adding), variables: { input: { postId, content } } }),
);
await follow({ last: comments.at(-1), load: async () => (await load()).comments.at(-1), show });
