import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prefersRepresentation } from '../../dist/http/prefer.js';

const prefers = (value: string | undefined): boolean =>
  prefersRepresentation({ header: (name) => (name === 'prefer' ? value : undefined) });

test('a client prefers a representation by the preference return (RFC 7240), the first one', () => {
  for (const value of [
    'return=representation',
    'RETURN = "representation"',
    'Return="repre\\sentation"; foo="a, b"',
    'respond-async, wait=10,return=representation',
    'a="return=minimal, \\", b", return=representation;x=y',
    ', ,\t return=representation ,',
    'handling=lenient;return=minimal, return=representation',
    'return=representation, return=minimal',
    'bad=, =worse, return=representation',
  ]) {
    assert.equal(prefers(value), true, value);
  }
  const others = ['', 'return', 'return=', 'return=""', 'return=minimal', 'return=Representation'];
  others.push('return=minimal, return=representation', 'return=representations');
  others.push('returns=representation', 'a="return=representation"', 'a="x, return=representation');
  others.push('a;return=representation', 'return=representation x', 'return=repre sentation');
  for (const value of [undefined, ...others, '"return"=representation'])
    assert.equal(prefers(value), false, value);
});
