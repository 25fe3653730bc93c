import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEndpoint } from '../support/graphql-endpoint.ts';
import { connectRaw } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { askUpgrade, connectByHand, upgradeLines } from '../support/ws-clients.ts';
import { keepOthersServed } from '../support/prober.ts';
import { until } from '../support/until.ts';

keepOthersServed();

test('the first sub-protocol that the server knows is taken', async (t) => {
  const { port } = await startEndpoint(t);
  for (const [offered, chosen] of [
    ['graphql-transport-ws', 'graphql-transport-ws'],
    ['graphql-ws', 'graphql-ws'],
    ['graphql-transport-ws, graphql-ws', 'graphql-transport-ws'],
    ['graphql-ws,graphql-transport-ws', 'graphql-ws'],
    ['soap, graphql-ws', 'graphql-ws'],
    // `ws` itself takes none of these.
    ['graphql-ws, graphql-ws', 'graphql-ws'],
    ['graphql-transport-ws,', 'graphql-transport-ws'],
    ['graphql-transport-ws, dG9rZW4=', 'graphql-transport-ws'],
    ['', undefined],
    [undefined, undefined],
  ] as const) {
    const lines = upgradeLines({ 'Sec-WebSocket-Protocol': offered });
    const { status, text } = await askUpgrade(port, lines);
    const taken = /^sec-websocket-protocol: (.*)$/im.exec(text)?.[1];
    assert.deepEqual([status, taken], [101, chosen], offered);
  }
});

for (const [name, status, changes, target] of [
  ['only unknown sub-protocols', 400, { 'Sec-WebSocket-Protocol': 'soap, mqtt' }],
  ['an unknown sub-protocol twice', 400, { 'Sec-WebSocket-Protocol': 'soap, soap' }],
  ['a name in other letters', 400, { 'Sec-WebSocket-Protocol': 'GRAPHQL-WS' }],
  ['another path', 404, {}, '/graphql/'],
  ['the root', 404, {}, '/'],
  ['a foreign origin', 403, { Origin: 'https://evil.example' }],
  ['an origin that only begins like the host', 403, { Origin: 'http://blog.example.evil' }],
  ['an origin with a user name', 403, { Origin: 'http://blog.example@evil.example' }],
  ['a page of another site', 403, { 'Sec-Fetch-Site': 'cross-site' }],
  ['no Host', 400, { Host: undefined }],
  ['a bad Host', 400, { Host: 'a b' }],
  ['no key', 400, { 'Sec-WebSocket-Key': undefined }],
  ['a short key', 400, { 'Sec-WebSocket-Key': 'YQ==' }],
  ['an unknown version', 400, { 'Sec-WebSocket-Version': '12' }],
  ['a version that is of another time', 400, { 'Sec-WebSocket-Version': '8' }],
  ['no version', 400, { 'Sec-WebSocket-Version': undefined }],
  ['a declared body', 400, { 'Content-Length': '1' }],
  ['a chunked body', 400, { 'Transfer-Encoding': 'chunked' }],
] as const) {
  test(`${name} is refused with ${status} and a problem`, async (t) => {
    const { port, sockets } = await startEndpoint(t);
    const response = await askUpgrade(port, upgradeLines(changes, target));
    assert.equal(response.status, status);
    const [head = '', body = ''] = response.text.split('\r\n\r\n');
    assert.match(head, /^connection: close$/im);
    assert.match(head, /^content-type: application\/problem\+json$/im);
    assert.equal((JSON.parse(body) as { status: number }).status, status);
    const badVersion = name.includes('version');
    assert.equal(/^sec-websocket-version: 13$/im.test(head), badVersion);
    const length = /^content-length: ([0-9]+)$/im.exec(head)?.[1];
    assert.equal(Number(length), Buffer.byteLength(body));
    assert.equal(sockets.size, 0);
  });
}

test('the socket opens for pages of the host, of allowed origins and of none', async (t) => {
  const env = { ALLOWED_ORIGINS: 'https://ui.example', PUBLIC_URL: 'https://public.example' };
  const { port } = await startEndpoint(t, { env });
  for (const [headers, target] of [
    [{}],
    [{ Origin: '' }],
    [{ Origin: 'http://blog.example' }],
    [{ Origin: 'https://blog.example' }],
    [{ Origin: 'http://BLOG.example', Host: 'Blog.Example' }],
    [{ Origin: 'https://ui.example' }, '/graphql'],
    [{ Origin: 'https://public.example' }],
    [{}, '/graphql?token=1'],
    [{}, 'http://blog.example/graphql'],
    [{ Upgrade: 'WebSocket' }],
  ] as const) {
    const { status } = await askUpgrade(port, upgradeLines(headers, target));
    assert.equal(status, 101, JSON.stringify([headers, target]));
  }
});

for (const [name, changes] of [
  ['neither Upgrade nor Connection', { Upgrade: undefined, Connection: undefined }],
  ['Connection alone', { Upgrade: undefined }],
  ['Upgrade alone', { Connection: undefined }],
  ['Upgrade to something else', { Upgrade: 'h2c' }],
  ['Upgrade and Connection: close, as a proxy without sockets sends it', { Connection: 'close' }],
] as const) {
  test(`a handshake with ${name} is told how to upgrade (R6a, RFC 9110 §15.5.22)`, async (t) => {
    const client = await connectRaw(t, startServer(t));
    const { status, headers, body } = await client.ask(upgradeLines(changes));
    assert.equal(status, 426);
    assert.equal(headers.get('upgrade'), 'websocket');
    // Bytes behind a handshake would not be read as a request.
    assert.equal(headers.get('connection'), 'Upgrade, close');
    await client.ended();
    assert.equal((JSON.parse(body.toString()) as { code: string }).code, 'upgrade_required');
  });
}

test('two Host lines are refused with 400', async (t) => {
  const { port } = await startEndpoint(t);
  const { status } = await askUpgrade(port, [...upgradeLines(), 'Host: other.example']);
  assert.equal(status, 400);
});

test('one socket more than the limit is refused with 503, and let in once one is gone', async (t) => {
  const { port, sockets } = await startEndpoint(t, { env: { CONNECTIONS_MAX: '12' } });
  const open = await Promise.all(Array.from({ length: 6 }, () => connectByHand(port)));
  const refused = await askUpgrade(port, upgradeLines());
  assert.equal(refused.status, 503);
  assert.match(refused.text, /^retry-after: [0-9]+$/im);
  await open.pop()?.close();
  await until('all but five sockets closed', () => sockets.size <= 5);
  assert.equal((await askUpgrade(port, upgradeLines())).status, 101);
});
