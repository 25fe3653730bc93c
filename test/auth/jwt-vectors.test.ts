/**
 * Signatures by vectors: the example of RFC 7515, and tokens with the faults for which Wycheproof
 * has vectors (github.com/C2SP/wycheproof, testvectors_v1/json_web_signature_test.json). The tokens
 * are this project's own; `tcIds` are the numbers of the vectors there that have the same fault.
 */

import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { test } from 'node:test';
import { verifySignature } from '../../dist/auth/jwt.js';

test('the example of RFC 7515 appendix A.1 verifies, and fails once it is changed', () => {
  const key = createSecretKey(
    Buffer.from(
      'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
      'base64url',
    ),
  );
  const token =
    'eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.' +
    'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.' +
    'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const signed = verifySignature(key, token);
  assert.ok(typeof signed !== 'string');
  assert.deepEqual(JSON.parse(String(signed.payload)), {
    iss: 'joe',
    exp: 1_300_819_380,
    'http://example.com/is_root': true,
  });
  assert.equal(verifySignature(key, token.replace('eyJpc3Mi', 'eyJpc3Mj')), 'signature');
  assert.equal(verifySignature(createSecretKey(Buffer.alloc(64)), token), 'signature');
});

/** Numbers of vectors, what is special about the token, or wrong with it, and the token. */
type Vector = readonly [tcIds: string, what: string, token: string];

/** The key of all tokens below: 32 bytes. */
const key = createSecretKey(Buffer.from('an octet key of these vectors 32'));
/** The header and the signature of most of them. */
const H = 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ';
const S = 'CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo';

const valid: readonly Vector[] = [
  ['1, 357', 'whole', `${H}.aW5r.${S}`],
  [
    '358',
    'an HMAC that begins with zero bytes',
    `${H}.djQwNzQ1NzMz.AAAAWLkvbt6euPjUoCVV8lcTdVD8rOzxgfk8nsy2chY`,
  ],
  [
    '359',
    'an HMAC that begins with bytes of ones',
    `${H}.djQ4MTM0MDQ.____3NzdZqK_ohOirJsCUKtuMoSnLP8u-O6OYKgXbvQ`,
  ],
  [
    '376',
    'spaces in the JSON of the header',
    'eyAiYWxnIiA6ICJIUzI1NiIgLCAia2lkIiA6ICJvdXJzIiB9.aW5r.I5QTwHjZZv2263nRN-w_KrS9tCMiRRLQVshI9qoC-UM',
  ],
  [
    '377',
    'line breaks and tabs in the JSON of the header',
    'eyJhbGciOiJIUzI1NiIsCgkia2lkIjoib3VycyJ9.aW5r.RQP6nuGPRWAP3u1XgETDAC4jnlWUCWerI4A3iBS2n-Y',
  ],
];

/** Wycheproof calls its vectors 372 and 373 valid; each has a character that base64url lacks. */
const invalid: readonly Vector[] = [
  ['2', 'another signature', `${H}.aW5r.AsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo`],
  ['3', 'no signature', `${H}.aW5r.`],
  ['4', 'no signature and no dot before it', `${H}.aW5r`],
  ['5', 'another payload', `${H}.aU5r.${S}`],
  ['6', 'no payload', `${H}..${S}`],
  ['7', 'no payload and no dot behind it', `${H}.${S}`],
  ['8', 'another header', `eyJhbGciOiJIUzI1NiIsImtpZCI6Im9VUnMifQ.aW5r.${S}`],
  ['9', 'no header', `.aW5r.${S}`],
  ['10', 'no header and no dot behind it', `aW5r.${S}`],
  ['11', 'a payload between two dots alone', '.aW5r.'],
  ['12', 'a payload alone', 'aW5r'],
  ['13', 'nothing', ''],
  ['14', 'a dot too many', `${H}.aW5r.${S}.`],
  ['15', 'a segment too many', `${H}.aW5r.${S}.aW5r`],
  ['16', 'the algorithm none without a signature', 'eyJhbGciOiJub25lIiwia2lkIjoib3VycyJ9.aW5r.'],
  [
    '17',
    'the JSON serialization',
    JSON.stringify({ payload: 'aW5r', signatures: [{ protected: H, signature: S }] }),
  ],
  ['360', 'spaces before the signature', `${H}.aW5r.  ${S}`],
  ['361', 'a character outside base64url before the signature', `${H}.aW5r.?${S}`],
  ['362', 'a character outside base64url behind the signature', `${H}.aW5r.${S}?`],
  [
    '363',
    'a character outside base64url in place of zero bits',
    `${H}.djQwNzQ1NzMz.?AAAWLkvbt6euPjUoCVV8lcTdVD8rOzxgfk8nsy2chY`,
  ],
  [
    '364',
    'characters outside base64url in place of ones',
    `${H}.djQ4MTM0MDQ.????3NzdZqK_ohOirJsCUKtuMoSnLP8u-O6OYKgXbvQ`,
  ],
  [
    '365',
    'signed with spaces behind the header',
    `${H}  .aW5r.ShT556P0FC47WZi2KZ9C5HqLijLiFo5yPHNEkCdX4XQ`,
  ],
  [
    '366',
    'signed with characters outside base64url behind the header',
    `${H}##.aW5r.v8VCOuGm7H67HUz1FdK1SZHlcxckFjmIijf1Dfq_blc`,
  ],
  ['367', 'padding behind the header', `${H}=.aW5r.${S}`],
  [
    '368',
    'signed with spaces before the payload',
    `${H}.  aW5r.VkmkfcqoAOP15KLb3amMove_fGLQamjzrtEFs2R_eK4`,
  ],
  [
    '369',
    'signed with characters outside base64url before the payload',
    `${H}.##aW5r.vQCIKSk4LO1OlLcvIZqeX7c9o3O0YdaaR0nSsuQZsC4`,
  ],
  ['370', 'padding behind the payload', `${H}.aW5r=.${S}`],
  [
    '371',
    'signed with a question mark before the payload',
    `${H}.?aW5r.fpt7XbXz24usrUw7vuCc_Wb1Da7weMV1D-A92wBZg9Q`,
  ],
  ['372', 'a question mark in the header', `${H}?.aW5r.${S}`],
  ['373', 'a question mark behind the payload', `${H}.aW5r?.${S}`],
  [
    '374',
    'signed with unused bits that are set in the payload',
    `${H}.AB.yMnsSkKpODaC__4rXvSEzs8fE9arKZrGkmZnM-tiSRI`,
  ],
  [
    '375',
    'the signature of the bytes that unused bits change',
    `${H}.AB.bZgd1uxoJN7tCWLko_c1epa4JGxt-6SFJmYMl0CLk18`,
  ],
];

for (const [vectors, found] of [
  [valid, 'object'],
  [invalid, 'string'],
] as const) {
  for (const [tcIds, what, token] of vectors) {
    test(`${found === 'object' ? 'verified' : 'refused'}: ${what} (Wycheproof ${tcIds})`, () => {
      assert.equal(typeof verifySignature(key, token), found);
    });
  }
}
