// Apollo Client 4: queries, mutations and uploads by HTTP, subscriptions by a WebSocket.
// npm install @apollo/client rxjs graphql graphql-ws apollo-upload-client
import { ApolloClient, ApolloLink, gql, InMemoryCache } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import UploadHttpLink from 'apollo-upload-client/UploadHttpLink.mjs';
import { OperationTypeNode } from 'graphql';
import { createClient } from 'graphql-ws';
import { getToken, server } from './login.mjs';

const http = new SetContextLink(async ({ headers }) => ({
  headers: { ...headers, authorization: `Bearer ${await getToken()}` },
})).concat(new UploadHttpLink({ uri: `${server}/graphql` }));
const socket = createClient({
  url: `${server.replace('http', 'ws')}/graphql`,
  shouldRetry: () => true,
});
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    http,
  ),
});

const query = gql('subscription { commentAdded { id content } }');
client.subscribe({ query }).subscribe(({ data }) => console.log(data.commentAdded.content));
const mutation = gql('mutation ($file: Upload!) { upload(file: $file) }');
const file = new File(['Sent by Apollo.'], 'apollo.txt', { type: 'text/plain' });
console.log((await client.mutate({ mutation, variables: { file } })).data);
