/** Attacks on memory: they open connections, ask for much, read nothing, and go on. */

import {
  type Attack,
  form,
  get,
  many,
  megabyte,
  objects,
  post,
  repeated,
  silent,
  sockets,
} from './attacks.ts';

/** Subscribers, each to a selection of its own, with queries whose results can be large. */
function subscribe(number: number): readonly string[] {
  const fields = many(16, (at) => `a${number}_${at}: content`);
  const query = `subscription { commentAdded { ${fields.join(' ')} } }`;
  const large = 'query Q($v: [String]) { allPosts { content } }';
  const variables = { v: 'x'.repeat(60_000) };
  const queries = many(20, (id) =>
    JSON.stringify({ id: `q${id}`, type: 'subscribe', payload: { query: large, variables } }),
  );
  const first = JSON.stringify({ id: 's', type: 'subscribe', payload: { query } });
  return ['{"type":"connection_init"}', first, ...queries];
}

/** Operations that wait for a `connection_init` which never comes. */
function wait(): readonly string[] {
  const payload = `{"query":"{ __typename }","extensions":{"a":${objects(50_000)}}}`;
  return many(16, (id) => `{"id":"${id}","type":"start","payload":${payload}}`);
}

function oddArticle(round: number): string {
  const shapes = [
    () => many(60_000, (at) => `"a${at}":{"1023":1}`).join(','),
    () => many(30_000, (at) => `"k${round}_${at}":{"${at}x":[${at}.5]}`).join(','),
    () => `"a":[${'[],'.repeat(300_000)}[]]`,
  ];
  return `{"title":"t",${shapes[round % shapes.length]?.() ?? ''}}`.slice(0, megabyte * 2);
}

const partHead = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n';
const oneField = '{"query":"{allPosts{content}}"}';

export const memoryAttacks: Readonly<Record<string, Attack>> = {
  'pages of the browser UI, pipelined': silent(40, () => get('/graphql-ui/main.js').repeat(33)),
  'downloads, pipelined': silent(40, () => get('/api/multiparts').repeat(33)),
  'all posts by GraphQL, pipelined': silent(40, () => post('/graphql', oneField).repeat(33)),
  'lists behind writes, pipelined': silent(20, () =>
    (post('/api/todos', '{"title":"t"}') + get('/api/todos')).repeat(16),
  ),
  'small requests, pipelined': silent(20, () => get('/hello').repeat(33)),
  'bodies that stop before their end': silent(200, () =>
    post('/posts', 'x'.repeat(megabyte)).slice(0, 900_000),
  ),
  'uploads that stop before their end': silent(200, () => {
    const whole = post('/api/multiparts/list', `${partHead}${'x'.repeat(3 * megabyte)}`, form);
    return whole.slice(0, 2_900_000);
  }),
  'heads that never end': silent(500, () => `${get('/').slice(0, -2)}${'a:\r\n'.repeat(3_900)}`),
  'pieces of one byte': silent(10, () => {
    const head = 'POST /posts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
    return `${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(100_000)}`;
  }),
  'event streams with large variables': silent(60, () => {
    const query = 'subscription { commentAdded { content } }';
    const body = JSON.stringify({ query, variables: { v: 'x'.repeat(900_000) } });
    return post('/graphql', body).replace('Host: a', 'Host: a\r\nAccept: text/event-stream');
  }),
  'subscriptions and queries on silent WebSockets': sockets(60, 'graphql-transport-ws', subscribe),
  'operations that wait, on the older protocol': sockets(30, 'graphql-ws', wait),
  'long tokens in connection_init': sockets(50, 'graphql-transport-ws', () => {
    const payload = { Authorization: `${'a'.repeat(60_000)}€` };
    return [JSON.stringify({ type: 'connection_init', payload })];
  }),
  'multipart operations of many values': silent(10, () => {
    const operations = `{"query":"{allPosts{content}}","extensions":{"a":${objects(megabyte)}}}`;
    const part = `--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n${operations}`;
    return post('/graphql', `${part}\r\n--b--\r\n`, form);
  }),
  'small bodies of many values': silent(100, () =>
    post('/graphql', `{"query":"{allPosts{content}}","extensions":{"a":${objects(15_900)}}}`),
  ),
  'logins of a megabyte': silent(20, () =>
    post('/auth/login', JSON.stringify({ username: 'user', password: 'x'.repeat(megabyte) })),
  ),
  'heads of a thousand parts': silent(10, () => {
    const parts = many(900, (at) => `--b\r\n${'x'.repeat(800)}:\r\n${at}`);
    return post('/api/multiparts/list', parts.join('\r\n'), form).slice(0, -9);
  }),
  'titles that triple': repeated('POST', {
    path: (_target, round) => (round % 2 === 0 ? '/posts' : '/graphql'),
    body: (round) =>
      round % 2 === 0
        ? JSON.stringify({ title: 'ΐ'.repeat(300_000), content: 'c' })
        : '{"query":"{allPosts(first:50){title}}"}',
  }),
  'patches of all articles': repeated('PATCH', {
    path: () => '/api/articles',
    body: (round) => JSON.stringify([{ op: 'add', path: '/0/x', value: round }]),
    type: 'application/json-patch+json',
  }),
  'documents of many lines': repeated('POST', {
    path: () => '/graphql',
    body: () => JSON.stringify({ query: `${'\n'.repeat(490_000)}{ a b c d e f g h }` }),
  }),
  'heads of lists': repeated('HEAD', { path: () => '/api/articles' }),
  'connections of a hundred header lines': silent(300, () => {
    const lines = many(90, (at) => `x-${at}: ${'v'.repeat(150)}\r\n`).join('');
    const head = `POST /posts HTTP/1.1\r\nHost: a\r\nContent-Length: 16384\r\n${lines}\r\n`;
    return head + ' '.repeat(16_000);
  }),
  'comments of a megabyte': repeated('POST', {
    path: ({ posts }, round) => `/posts/${posts[round % posts.length] ?? ''}/comments`,
    body: () => JSON.stringify({ content: 'x'.repeat(900_000) }),
  }),
  'articles of odd shapes': repeated('POST', { path: () => '/api/articles', body: oddArticle }),
  'merge patches with members like indices': repeated('PATCH', {
    path: () => '/api/articles/1',
    body: oddArticle,
    type: 'application/merge-patch+json',
  }),
  'spellings of one id': repeated('GET', {
    path: ({ posts }, round) => {
      const spelled = Array.from(posts[0] ?? '', (letter, at) =>
        (round >> (at % 16)) % 2 === 1 ? `%${letter.charCodeAt(0).toString(16)}` : letter,
      );
      return `/posts/${spelled.join('')}?${'q'.repeat(7_000)}`;
    },
  }),
  'documents of many equal fields': repeated('POST', {
    path: () => '/graphql',
    body(round) {
      const fields = 'allPosts { id } '.repeat(330);
      return JSON.stringify(many(20, (at) => ({ query: `query Q${round}_${at} { ${fields} }` })));
    },
  }),
  'logins that fail': repeated('POST', {
    path: () => '/auth/login',
    body: (round) => JSON.stringify({ username: `user${round}`, password: 'x'.repeat(1_000) }),
  }),
};
