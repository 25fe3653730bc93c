import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logIn } from '../support/login.ts';
import { startServer } from '../support/server.ts';

test('a token that is sent otherwise is refused, not lost (R23)', async (t) => {
  const server = await startServer(t);
  const token = await logIn(server);
  const post = (authorization: string): Promise<Response> =>
    server.fetch('/posts', {
      method: 'POST',
      body: JSON.stringify({ title: 'a', content: 'b' }),
      headers: { 'Content-Type': 'application/json', Authorization: authorization },
    });
  const same = `Bearer ${token}`;
  for (const authorization of [same, `bearer  ${token}`]) {
    assert.equal((await post(authorization)).status, 201, authorization);
  }
  for (const authorization of [
    token,
    `Bearer: ${token}`,
    `Bearer\t${token}`,
    `Basic dTpw, Bearer ${token}`,
    'Bearer:x',
  ]) {
    const response = await post(authorization);
    assert.equal(response.status, 401, authorization);
    assert.equal(((await response.json()) as { code: string }).code, 'missing_token');
  }
  // Tokens of somebody else, and other schemes.
  for (const authorization of [`${token}x`, 'a.b.c', `JWT ${token}`, 'BearerX a', 'X bearer-b']) {
    assert.equal((await post(authorization)).status, 201, authorization);
  }
});
