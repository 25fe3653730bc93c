import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logIn } from '../support/login.ts';
import { startServer } from '../support/server.ts';

test('a token that is sent otherwise is refused, not lost (R23)', async (t) => {
  const server = await startServer(t);
  const token = await logIn(server);
  const post = async (Authorization: string): Promise<unknown> => {
    const body = { title: 'a', content: 'b' };
    const response = await server.send('POST', '/posts', body, { Authorization });
    return response.status === 201 ? 201 : ((await response.json()) as { code: string }).code;
  };
  const spelt = [token, `Bearer: ${token}`, `Bearer\t${token}`, `Basic dTpw, Bearer ${token}`];
  for (const one of [...spelt, 'Bearer:x']) assert.equal(await post(one), 'missing_token', one);
  // Tokens of somebody else, and other schemes.
  const others = [`${token}x`, 'a.b.c', `JWT ${token}`, 'BearerX a', 'X bearer-b'];
  for (const one of [`Bearer ${token}`, `bearer  ${token}`, ...others]) {
    assert.equal(await post(one), 201, one);
  }
});
