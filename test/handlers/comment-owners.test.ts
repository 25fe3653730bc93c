/** Comments are removed by the author of their post, with `owners` (R36). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logIn } from '../support/login.ts';
import { startServer } from '../support/server.ts';

test('authors remove comments on their own posts, whoever wrote them; ADMIN removes all', async (t) => {
  const server = await startServer(t, { env: { REQUIRE_AUTH: 'owners' } });
  const send = (token: string, method: string, ...[path, body]: [string, object?]) =>
    server.fetch(path, {
      method,
      headers: {
        'Content-Type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        ...(token !== '' && { Authorization: `Bearer ${token}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
  const placeOf = async (created: Promise<Response>): Promise<string> =>
    (await created).headers.get('location') ?? '';
  const [user, admin] = [await logIn(server), await logIn(server, 'admin')] as const;
  for (const [author, other, refusal] of [
    [admin, user, 403],
    [user, admin, 204],
  ] as const) {
    const post = await placeOf(send(author, 'POST', '/posts', { title: 't', content: 'c' }));
    const { status } = await send(author, 'PATCH', post, { status: 'PUBLISHED' });
    assert.equal(status, 204);
    for (const [remover, expected] of [
      ['', 401],
      [other, refusal],
      [author, 204],
    ] as const) {
      const comment = await placeOf(send(other, 'POST', `${post}/comments`, { content: 'c' }));
      assert.equal((await send(remover, 'DELETE', comment)).status, expected);
    }
  }
});
