/** Which methods and media types each path has (R6, R9). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../support/server.js';

const post = '/posts/00000000-0000-7000-8000-0000000000ff';

test('another method is 405 with Allow, and OPTIONS tells the same', async (t) => {
  const server = await startServer(t);
  for (const [path, allow] of [
    ['/', 'GET, HEAD'],
    ['/hello', 'GET, HEAD'],
    ['/graphql', 'POST, GET, HEAD'],
    ['/posts', 'GET, POST, HEAD'],
    [post, 'GET, PUT, PATCH, DELETE, HEAD'],
    [`${post}/comments`, 'GET, POST, HEAD'],
    ['/comments/x', 'GET, DELETE, HEAD'],
    ['/auth/login', 'POST'],
    ['/profile', 'GET, HEAD'],
    ['/api/multiparts', 'GET, HEAD'],
    ['/api/multiparts/list', 'POST'],
    ['/api/multiparts/x', 'GET, DELETE, HEAD'],
    ['/api/todos', 'GET, POST, HEAD'],
    ['/api/todos/x', 'GET, PATCH, DELETE, HEAD'],
    ['/api/articles', 'GET, POST, PATCH, HEAD'],
    ['/api/articles/1', 'GET, PATCH, HEAD'],
  ] as const) {
    const refused = await server.fetch(path, { method: 'PROPFIND', body: 'x' });
    assert.deepEqual(await refused.json(), {
      title: 'Method Not Allowed',
      status: 405,
      code: 'method_not_allowed',
      error: `This resource has ${allow}, OPTIONS.`,
    });
    const options = await server.fetch(path, { method: 'OPTIONS' });
    for (const { headers } of [refused, options]) {
      assert.equal(headers.get('allow'), `${allow}, OPTIONS`, path);
    }
    assert.deepEqual([refused.status, options.status], [405, 204]);
  }
});

test('a response of another type than asked for is 406, another spelling of a path 404', async (t) => {
  const server = await startServer(t);
  const statusOf = async (path: string): Promise<number> =>
    (await server.fetch(path, { headers: { Accept: 'image/png' } })).status;
  const { headers } = await server.send('POST', '/posts', { title: 'a', content: 'b' });
  const made = headers.get('location') ?? '';
  const paths = ['/', '/hello', '/posts', made, `${made}/comments`, '/api/articles', '/api/todos'];
  for (const path of paths) assert.equal(await statusOf(path), 406, path);
  for (const path of ['/todos', '/api', '/api/', '/api/todos/', '/API/todos']) {
    assert.equal(await statusOf(path), 404, path);
  }
});
