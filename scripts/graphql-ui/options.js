/**
 * What the browser UI starts with. It is a file of its own because the page's
 * Content-Security-Policy allows no inline script. Addresses are worked out from the page's own, so
 * that the UI works behind any host, port or path prefix.
 */

const endpoint = new URL('../graphql', document.baseURI);
const socket = new URL(endpoint);
socket.protocol = endpoint.protocol === 'https:' ? 'wss:' : 'ws:';

const addresses = {
  endpointURL: endpoint.href,
  subscriptionsEndpoint: socket.href,
  // Altair's name for the protocol whose sub-protocol is called graphql-transport-ws.
  initialSubscriptionRequestHandlerId: 'graphql-ws',
  initialSubscriptionsPayload: {},
};

/** One tab per thing to try; the first, which accessible.js opens, needs no input. */
const examples = [
  {
    initialName: 'Posts',
    initialQuery: `# Press Ctrl+Enter (or the button above) to run this.
query Posts {
  allPosts {
    id
    rawTitle
    content
    publishedAt
    author {
      name
    }
    comments {
      name
      content
    }
  }
}
`,
  },
  {
    initialName: 'Comments, live',
    initialQuery: `# Run this, then add a comment in another tab and come back.
subscription Comments {
  commentAdded {
    id
    name
    content
    createdAt
    postId
  }
}
`,
  },
  {
    initialName: 'Add a comment',
    initialQuery: `# The variables below name a post of the demo data; the id of any other post does as well.
mutation AddComment($input: CommentInput!) {
  addComment(commentInput: $input)
}
`,
    initialVariables: `{
  "input": {
    "postId": "019b8d5e-9c00-7000-8000-000000000103",
    "name": "Ada",
    "content": "Well said."
  }
}`,
  },
  {
    initialName: 'Create a post',
    initialQuery: `# Log in first (below on the left), and you are its author.
mutation CreatePost($input: CreatePostInput!) {
  createPost(createPostInput: $input)
}
`,
    initialVariables: `{
  "input": {
    "title": "Hello, ink",
    "content": "The first post of many."
  }
}`,
  },
  {
    initialName: 'Upload',
    initialQuery: `# Open "Variables" below, press "Add files" and call it: file
mutation Upload($file: Upload!) {
  upload(file: $file)
}
`,
  },
];

globalThis.AltairGraphQL.init({
  ...addresses,
  instanceStorageNamespace: 'inkwell_',
  initialSettings: {
    theme: 'system',
    // The page's policy lets nothing reach another host; do not even ask.
    disablePushNotification: true,
    'alert.disableUpdateNotification': true,
    'banners.disable': true,
    // Documentation and completion from the first moment.
    'schema.reloadOnStart': true,
  },
  initialWindows: examples.map((example) => ({ ...addresses, ...example })),
});
