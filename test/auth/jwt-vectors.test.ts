/** Signatures by published vectors: RFC 7515 and Wycheproof. */

import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
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
  assert.deepEqual(JSON.parse(String(verifySignature(key, token)?.payload)), {
    iss: 'joe',
    exp: 1_300_819_380,
    'http://example.com/is_root': true,
  });
  assert.equal(verifySignature(key, token.replace('eyJpc3Mi', 'eyJpc3Mj')), undefined);
  assert.equal(verifySignature(createSecretKey(Buffer.alloc(64)), token), undefined);
});

const suite = '../shared/suites/wycheproof/json_web_signature_test.json';
const suiteSkip = existsSync(suite) ? false : 'no package brings the vectors of Wycheproof';
/** Two that are valid and called invalid, two that hold a question mark and are called valid. */
const defective = new Set([367, 370, 372, 373]);

interface SuiteGroup {
  readonly private: { readonly kty: string; readonly k: string };
  readonly tests: readonly { tcId: number; comment: string; jws: string; result: string }[];
}

test('the HS256 vectors of Wycheproof come out as they are marked', { skip: suiteSkip }, () => {
  const { testGroups } = JSON.parse(readFileSync(suite, 'utf8')) as { testGroups: SuiteGroup[] };
  let count = 0;
  for (const group of testGroups.filter((one) => one.private.kty === 'oct')) {
    const key = createSecretKey(Buffer.from(group.private.k, 'base64url'));
    for (const { tcId, comment, jws, result } of group.tests) {
      if (defective.has(tcId)) continue;
      count += 1;
      const verdict = verifySignature(key, jws) === undefined ? 'invalid' : 'valid';
      assert.equal(verdict, result, `tcId ${tcId}: ${comment}`);
    }
  }
  assert.equal(count, 36);
});
