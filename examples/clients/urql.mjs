// urql: queries, mutations and uploads by HTTP, subscriptions by a WebSocket.
// npm install @urql/core graphql graphql-ws
import { cacheExchange, Client, fetchExchange, gql, subscriptionExchange } from '@urql/core';
import { createClient } from 'graphql-ws';
import { getToken, server } from './login.mjs';

const socket = createClient({
  url: `${server.replace('http', 'ws')}/graphql`,
  shouldRetry: () => true,
});
const forwardSubscription = (request) => ({
  subscribe: (sink) => ({ unsubscribe: socket.subscribe(request, sink) }),
});
const client = new Client({
  url: `${server}/graphql`,
  fetch: async (url, options) => {
    const headers = { ...options.headers, authorization: `Bearer ${await getToken()}` };
    return fetch(url, { ...options, headers });
  },
  exchanges: [cacheExchange, fetchExchange, subscriptionExchange({ forwardSubscription })],
});

const query = gql('subscription { commentAdded { id content } }');
client.subscription(query, {}).subscribe(({ data }) => console.log(data.commentAdded.content));
const mutation = gql('mutation ($file: Upload!) { upload(file: $file) }');
const file = new File(['Sent by urql.'], 'urql.txt', { type: 'text/plain' });
console.log((await client.mutation(mutation, { file })).data);
