import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isJsonType } from '../../dist/http/json.js';
import { negotiate, parseMediaType } from '../../dist/http/media-type.js';

const json = 'application/json';
const text = 'text/plain';

test('a media type is read with its parameters, case and quotes as RFC 9110 §8.3.1 has them', () => {
  const type = parseMediaType('Text/HTML ; Charset="ut\\f-8";; boundary=a; CHARSET=other ');
  assert.equal(type?.essence, 'text/html');
  const found = [...(type?.parameters ?? [])];
  assert.deepEqual(found, [
    ['charset', 'utf-8'],
    ['boundary', 'a'],
  ]);
});

test('what is no media type is refused', () => {
  const texts = ['', 'text', 'text/', '/plain', 'text/plain/x', 'te xt/plain', 'text/plain a=b'];
  const parameters = ['a', '=b', 'a="b', 'a="b"c', 'a=b c', 'a="\0"', 'a="\r\n"'];
  for (const one of [...texts, ...parameters.map((parameter) => `text/plain;${parameter}`)])
    assert.equal(parseMediaType(one), undefined, one);
});

test('JSON is application/json or +json, with no charset or UTF-8 (R10)', () => {
  const right = [json, 'Application/JSON', 'application/ld+json', 'model/gltf+json'];
  // `utf-8` alone is of tutorials for Java.
  const charsets = ['charset=utf-8', 'charset=UTF-8', 'charset="utf-8"', 'q=1; charset=utf8'];
  charsets.push('charset=', 'utf-8', 'charset = UTF-8', 'profile=a=b:/c');
  for (const one of [...right, ...charsets.map((charset) => `${json}; ${charset}`)])
    assert.equal(isJsonType(one), true, one);
  const wrong = [undefined, '', text, 'application/jsonp', 'text/json', 'application/json-patch'];
  const others = ['charset=latin1', 'charset=utf-16', 'charset', 'latin1', 'charset = latin1'];
  for (const one of [...wrong, ...others.map((charset) => `${json}; ${charset}`)])
    assert.equal(isJsonType(one), false, one);
});

test('the best of what is offered is chosen (RFC 9110 §12.5.1)', () => {
  const rows: readonly (readonly [string | undefined, string | undefined])[] = [
    [undefined, json],
    ['', json],
    [' , ', json],
    ['*/*', json],
    ['*', json],
    ['image/png, * ;q=.5', json],
    ['application/*', json],
    ['TEXT/Plain', text],
    ['text/*;q=0.5, */*;q=0.1', text],
    ['text/plain;q=0.5, application/json;q=0.5', json],
    ['*/*, application/json;q=0', text],
    ['application/json;q=0.001, text/plain;q=0', json],
    ['image/png', undefined],
    ['*/*;q=0', undefined],
    ['application/json;q=2', undefined],
    ['application/json;q=high', undefined],
    ['rubbish', undefined],
    ['application/json; q=', json],
    ['text/plain; application/json', text],
    ['image/png; application/json', undefined],
    // Java's HttpURLConnection.
    ['text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2', json],
    // A browser.
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', json],
  ];
  for (const [accept, expected] of rows)
    assert.equal(negotiate(accept, [json, text]), expected, accept);
});

test('of a long header the first members count, and quotes hold commas (R47)', () => {
  const rest = `, ${json}, a/a;b="c"`.repeat(2_000);
  assert.equal(negotiate(`text/plain${rest}`, [text]), text);
  assert.equal(negotiate(`${'a/a,'.repeat(5_000)} ${json}`, [json]), undefined);
  assert.equal(negotiate(`a/a;b="c, ${json}, \\", d", ${text};q=0.5`, [json, text]), text);
  assert.equal(isJsonType(`${json}${';a=b'.repeat(16)}`), true);
  assert.equal(isJsonType(`${json}${';a=b'.repeat(17)}`), false);
});
