/** Tokens: every kind of damage, and the claims that count (R20, R22). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { words } from '../support/lists.ts';
import { testAtLength } from '../support/long.ts';
import { distUrl, runInHeap } from '../support/small-heap.ts';
import {
  account,
  claimsOf,
  createOwn,
  forge,
  goodClaims,
  goodHeader,
  goodPayload,
  person,
  secret,
  sign,
  startSeconds,
  toKeyId,
  toSegment,
  type Verified,
} from '../support/tokens.ts';

const tokenLengthMax = 4_096;

const assertGood = (verified: Verified, message = 'refused'): void =>
  assert.ok(typeof verified !== 'string', message);
const assertRefused = (verified: Verified, message = 'taken'): void =>
  assert.ok(typeof verified === 'string', message);

test('a token carries name, address and roles, and lives for its time to live', () => {
  const tokens = createOwn();
  const token = tokens.sign(account);
  const [header, payload] = token.split('.').map((part) => Buffer.from(part, 'base64url'));
  assert.deepEqual(JSON.parse(String(header)), { alg: 'HS256', typ: 'JWT', kid: toKeyId(secret) });
  assert.deepEqual(JSON.parse(String(payload)), goodClaims);
  const claims = claimsOf(tokens.verify(token));
  assert.deepEqual([claims.sub, claims.email, claims.roles], Object.values(person));
});

test('no token survives the flip of any one bit, also once it is remembered', () => {
  const tokens = createOwn();
  const token = tokens.sign(account);
  assertGood(tokens.verify(token));
  const bytes = Buffer.from(token, 'latin1');
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const flipped = Buffer.from(bytes);
    const at = bit >> 3;
    flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at);
    assertRefused(tokens.verify(flipped.toString('latin1')), `bit ${bit}`);
  }
});

test('a character that only looks like another one in eight bits is another one', () => {
  const tokens = createOwn();
  const token = tokens.sign(account);
  const wide = (at: number): string =>
    token.slice(0, at) + String.fromCharCode(token.charCodeAt(at) + 256) + token.slice(at + 1);
  for (let at = 0; at < token.length; at += 1)
    assertRefused(tokens.verify(wide(at)), `character ${at}`);
});

test('segments that are not the one way to write their bytes are refused though signed', () => {
  const tokens = createOwn();
  const header = toSegment('{"alg":"HS256"}');
  assertGood(tokens.verify(sign(`${header}.${toSegment(goodPayload)}`)));
  // One byte more than a multiple of three: the last character holds four unused bits.
  const length = goodPayload.length + 3 - ((goodPayload.length + 2) % 3);
  const payload = toSegment(goodPayload.padEnd(length));
  assertGood(tokens.verify(sign(`${header}.${payload}`)));
  const loose = payload.replace(/A$/, 'B');
  assert.notEqual(loose, payload);
  assert.equal(Buffer.from(loose, 'base64url').length, length);
  assertRefused(tokens.verify(sign(`${header}.${loose}`)));
  assertRefused(tokens.verify(sign(`${header}.${toSegment(goodPayload)}==`)));
  assertRefused(tokens.verify(sign(`${header}\n.${toSegment(goodPayload)}`)));
});

const goodHeaders = [
  '{"alg":"HS256"}',
  '{ "typ" : "jwt", "alg" : "HS256" }',
  `{"alg":"HS256","typ":"JWT","kid":"${toKeyId(secret)}"}`,
];
const badHeaders = words(`
  {"alg":"none"} {"alg":"hs256"} {"alg":"HS384"} {"alg":"RS256"} {"alg":["HS256"]} {"alg":null}
  {"typ":"JWT"} {"alg":"HS256","typ":"JWE"} {"alg":"HS256","typ":null} {"alg":"HS256","kid":1}
  {"alg":"HS256","typ":"JWT","kid":"2024"} {"alg":"HS256","typ":"JWT","kid":""}
  {"alg":"HS256","typ":"JWT","kid":null} {"alg":"HS256","crit":[]}
  {"alg":"HS256","crit":["exp"],"exp":1} {"alg":"HS256","b64":false}
  {"alg":"HS256","jku":"https://example.com/keys"} {"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}
  {"alg":"HS256","__proto__":{}} {"alg":"none","alg":"HS256"} {"alg":"none","\\u0061lg":"HS256"}
  ["HS256"] "HS256" null {"alg":"HS256"
`);

test('only the header of a plain HS256 token is taken', () => {
  const tokens = createOwn();
  for (const header of goodHeaders) assertGood(tokens.verify(forge(header, goodPayload)), header);
  const notUtf8 = Buffer.from('{"alg":"HS256","kid":"\xff"}', 'latin1');
  for (const header of [...badHeaders, notUtf8])
    assertRefused(tokens.verify(forge(header, goodPayload)), String(header));
});

test('a key id names the one key that may have signed; without one any key may', () => {
  const keys = [Buffer.alloc(32, 8), secret] as const;
  const tokens = createOwn(keys);
  for (const [at, key] of keys.entries()) {
    const isTaken = (header: object): boolean => {
      const input = `${toSegment(JSON.stringify(header))}.${toSegment(goodPayload)}`;
      return typeof tokens.verify(sign(input, key)) !== 'string';
    };
    assert.ok(isTaken({ alg: 'HS256' }), `key ${at}`);
    for (const named of keys)
      assert.equal(isTaken({ alg: 'HS256', kid: toKeyId(named) }), named === key, `key ${at}`);
  }
});

/** Values of claims; undefined leaves one out. */
const goodValues: Readonly<Record<string, readonly unknown[]>> = {
  roles: [[], account.roles],
  iat: [undefined],
  auth_time: [undefined, 0],
  credential: ['of no password'],
  exp: [Number.MAX_SAFE_INTEGER],
  nbf: [undefined, startSeconds],
  jti: ['whatever'],
  iss: ['inkwell'],
};
const now = startSeconds;
const badValues: typeof goodValues = {
  sub: [undefined, 7, null, ['user']],
  email: [undefined, {}],
  roles: [undefined, 'ADMIN', ['USER', 1], { 0: 'USER', length: 1 }],
  exp: [undefined, null, `${now + 60}`, now + 60.5, now, -1, 1e300, [9e9]],
  iat: ['now', startSeconds - 0.5, null],
  auth_time: ['now', startSeconds - 0.5, -1, null],
  credential: [undefined, null, 7, ['x']],
  nbf: [startSeconds + 1, 'soon', null],
  aud: ['another service'],
};

test('claims that are missing, odd, too late or too early are refused', async (t) => {
  const tokens = createOwn();
  for (const [isGood, values] of [[true, goodValues] as const, [false, badValues] as const]) {
    for (const [name, value] of toPairs(values)) {
      await t.test(`${name} ${JSON.stringify(value)}`, () => {
        const token = forge(goodHeader, JSON.stringify({ ...goodClaims, [name]: value }));
        assert.equal(typeof tokens.verify(token) !== 'string', isGood);
      });
    }
  }
});

function toPairs(values: typeof goodValues): readonly (readonly [string, unknown])[] {
  return Object.entries(values).flatMap(([name, list]) => list.map((one) => [name, one] as const));
}

test('a payload that is no object, no JSON, no UTF-8 or says a thing twice is refused', () => {
  const tokens = createOwn();
  const rest = goodPayload.slice(1);
  const payloads = [
    '[]',
    'null',
    '"user"',
    '{',
    `${goodPayload}x`,
    `{"exp":99999999999,${rest}`,
    `{"sub":"admin",${rest}`,
    `{"s\\u0075b":"admin",${rest}`,
    `{"a":{"b":1,"b":2},${rest}`,
    Buffer.from(goodPayload.replace('"user"', '"us\xffer"'), 'latin1'),
  ];
  for (const payload of payloads)
    assertRefused(tokens.verify(forge(goodHeader, payload)), String(payload));
  const escaped = goodPayload.replace('"user"', '"a:\\"b\\\\:\\":"');
  assert.equal(claimsOf(tokens.verify(forge(goodHeader, escaped))).sub, 'a:"b\\:":');
});

test('a token of more characters than the limit is refused, one at the limit is not', () => {
  const tokens = createOwn();
  const ofLength = (length: number): string => {
    const fixed = forge('{"alg":"HS256"}', JSON.stringify({ ...goodClaims, x: '' })).length;
    const free = Math.floor(((length - fixed) * 3) / 4);
    for (let size = free - 4; ; size += 1) {
      const payload = JSON.stringify({ ...goodClaims, x: 'x'.repeat(size) });
      const token = forge('{"alg":"HS256"}', payload);
      if (token.length >= length) return token;
    }
  };
  const atLimit = ofLength(tokenLengthMax);
  const above = ofLength(tokenLengthMax + 1);
  assert.equal(atLimit.length, tokenLengthMax);
  assert.ok(above.length > tokenLengthMax);
  assertGood(tokens.verify(atLimit));
  assertRefused(tokens.verify(above));
});

testAtLength('the header that a token was cut out of is not kept with it', async () => {
  const script = `
    import { createTokens } from '${distUrl('auth/jwt.js')}';
    const now = () => new Date();
    const tokens = createTokens({ secrets: [Buffer.alloc(32, 7)], ttlSeconds: 60, now });
    for (let count = 0; count < 3_000; count += 1) {
      const account = { username: 'a', email: 'b' + count, roles: [], passwordHash: 'c' };
      const token = ' '.repeat(15_000) + tokens.sign(account);
      tokens.verify(token.slice(15_000));
    }`;
  assert.equal(runInHeap(12, script), '');
});

test('a refused token has a fault with a name', async (t) => {
  const tokens = createOwn();
  const good = tokens.sign(account);
  const claims = (others: object): string =>
    forge(goodHeader, JSON.stringify({ ...goodClaims, ...others }));
  const other = createOwn([Buffer.alloc(32, 9)]);
  const faults = {
    expired: [claims({ exp: startSeconds }), claims({ nbf: startSeconds + 1 })],
    signature: [`${good.slice(0, -1)}${good.endsWith('A') ? 'B' : 'A'}`, other.sign(account)],
    malformed: ['', `${good}x`, 'a'.repeat(5_000), claims({ exp: 'soon' }), claims({ aud: 'b' })],
  };
  for (const [fault, refused] of Object.entries(faults)) {
    await t.test(fault, async () => {
      for (const token of refused) assert.equal(tokens.verify(token), fault, token);
    });
  }
});
