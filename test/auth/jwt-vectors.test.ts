/**
 * Signatures by vectors: the example of RFC 7515, and tokens with the faults for which Wycheproof
 * has vectors (github.com/C2SP/wycheproof, testvectors_v1/json_web_signature_test.json). The tokens
 * are this project's own; `tcIds` are the numbers of the vectors there that have the same fault.
 */

import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { describe, it, test } from 'node:test';
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

interface Vector {
  /** What is special about the token, or wrong with it. */
  readonly what: string;
  readonly tcIds: readonly number[];
  readonly token: string;
}

/** The key of all tokens below: 32 bytes. */
const key = createSecretKey(Buffer.from('an octet key of these vectors 32'));

const valid: readonly Vector[] = [
  {
    what: 'whole',
    tcIds: [1, 357],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'an HMAC that begins with zero bytes',
    tcIds: [358],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.djQwNzQ1NzMz.AAAAWLkvbt6euPjUoCVV8lcTdVD8rOzxgfk8nsy2chY',
  },
  {
    what: 'an HMAC that begins with bytes of ones',
    tcIds: [359],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.djQ4MTM0MDQ.____3NzdZqK_ohOirJsCUKtuMoSnLP8u-O6OYKgXbvQ',
  },
  {
    what: 'spaces in the JSON of the header',
    tcIds: [376],
    token:
      'eyAiYWxnIiA6ICJIUzI1NiIgLCAia2lkIiA6ICJvdXJzIiB9.aW5r.I5QTwHjZZv2263nRN-w_KrS9tCMiRRLQVshI9qoC-UM',
  },
  {
    what: 'line breaks and tabs in the JSON of the header',
    tcIds: [377],
    token:
      'eyJhbGciOiJIUzI1NiIsCgkia2lkIjoib3VycyJ9.aW5r.RQP6nuGPRWAP3u1XgETDAC4jnlWUCWerI4A3iBS2n-Y',
  },
];

/** Wycheproof calls its vectors 372 and 373 valid; each has a character that base64url lacks. */
const invalid: readonly Vector[] = [
  {
    what: 'another signature',
    tcIds: [2],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.AsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  { what: 'no signature', tcIds: [3], token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.' },
  {
    what: 'no signature and no dot before it',
    tcIds: [4],
    token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r',
  },
  {
    what: 'another payload',
    tcIds: [5],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aU5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'no payload',
    tcIds: [6],
    token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ..CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'no payload and no dot behind it',
    tcIds: [7],
    token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'another header',
    tcIds: [8],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im9VUnMifQ.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  { what: 'no header', tcIds: [9], token: '.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo' },
  {
    what: 'no header and no dot behind it',
    tcIds: [10],
    token: 'aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  { what: 'a payload between two dots alone', tcIds: [11], token: '.aW5r.' },
  { what: 'a payload alone', tcIds: [12], token: 'aW5r' },
  { what: 'nothing', tcIds: [13], token: '' },
  {
    what: 'a dot too many',
    tcIds: [14],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo.',
  },
  {
    what: 'a segment too many',
    tcIds: [15],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo.aW5r',
  },
  {
    what: 'the algorithm none without a signature',
    tcIds: [16],
    token: 'eyJhbGciOiJub25lIiwia2lkIjoib3VycyJ9.aW5r.',
  },
  {
    what: 'the JSON serialization',
    tcIds: [17],
    token:
      '{"payload":"aW5r","signatures":[{"protected":"eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cn' +
      'MifQ","signature":"CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo"}]}',
  },
  {
    what: 'spaces before the signature',
    tcIds: [360],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.  CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'a character outside base64url before the signature',
    tcIds: [361],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.?CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'a character outside base64url behind the signature',
    tcIds: [362],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo?',
  },
  {
    what: 'a character outside base64url in place of zero bits',
    tcIds: [363],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.djQwNzQ1NzMz.?AAAWLkvbt6euPjUoCVV8lcTdVD8rOzxgfk8nsy2chY',
  },
  {
    what: 'characters outside base64url in place of ones',
    tcIds: [364],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.djQ4MTM0MDQ.????3NzdZqK_ohOirJsCUKtuMoSnLP8u-O6OYKgXbvQ',
  },
  {
    what: 'signed with spaces behind the header',
    tcIds: [365],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ  .aW5r.ShT556P0FC47WZi2KZ9C5HqLijLiFo5yPHNEkCdX4XQ',
  },
  {
    what: 'signed with characters outside base64url behind the header',
    tcIds: [366],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ##.aW5r.v8VCOuGm7H67HUz1FdK1SZHlcxckFjmIijf1Dfq_blc',
  },
  {
    what: 'padding behind the header',
    tcIds: [367],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ=.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'signed with spaces before the payload',
    tcIds: [368],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.  aW5r.VkmkfcqoAOP15KLb3amMove_fGLQamjzrtEFs2R_eK4',
  },
  {
    what: 'signed with characters outside base64url before the payload',
    tcIds: [369],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.##aW5r.vQCIKSk4LO1OlLcvIZqeX7c9o3O0YdaaR0nSsuQZsC4',
  },
  {
    what: 'padding behind the payload',
    tcIds: [370],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r=.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'signed with a question mark before the payload',
    tcIds: [371],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.?aW5r.fpt7XbXz24usrUw7vuCc_Wb1Da7weMV1D-A92wBZg9Q',
  },
  {
    what: 'a question mark in the header',
    tcIds: [372],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ?.aW5r.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'a question mark behind the payload',
    tcIds: [373],
    token:
      'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.aW5r?.CsCmWlFchuTdRWvVA6nkM8tiDJpnAIuWJPldByWe_Xo',
  },
  {
    what: 'signed with unused bits that are set in the payload',
    tcIds: [374],
    token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.AB.yMnsSkKpODaC__4rXvSEzs8fE9arKZrGkmZnM-tiSRI',
  },
  {
    what: 'the signature of the bytes that unused bits change',
    tcIds: [375],
    token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6Im91cnMifQ.AB.bZgd1uxoJN7tCWLko_c1epa4JGxt-6SFJmYMl0CLk18',
  },
];

describe('a signature is verified', () => {
  for (const { what, tcIds, token } of valid) {
    it(`${what} (Wycheproof ${tcIds.join(', ')})`, () => {
      assert.equal(typeof verifySignature(key, token), 'object');
    });
  }
});

describe('a signature is refused', () => {
  for (const { what, tcIds, token } of invalid) {
    it(`${what} (Wycheproof ${tcIds.join(', ')})`, () => {
      assert.equal(typeof verifySignature(key, token), 'string');
    });
  }
});
