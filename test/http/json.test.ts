import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { AppError } from '../../dist/errors.js';
import { parseJson } from '../../dist/http/json.js';
import { cases } from '../support/long.ts';
import { anyCharacter } from '../support/texts.ts';
import type { Json } from '../../dist/store/model.js';

const jsonDepthMax = 64;
const jsonValuesMax = 50_000;

function isRefused(json: string | Buffer, code = 'invalid_json'): boolean {
  try {
    parseJson(json);
    return false;
  } catch (error) {
    assert.ok(error instanceof AppError);
    assert.equal(error.code, code);
    assert.ok(error.message.length < 120);
    return true;
  }
}

test('any JSON value comes through as it is', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ stringUnit: anyCharacter, maxDepth: 5, depthSize: 'small' }),
      (value) => {
        const json = JSON.stringify(value);
        // fast-check makes members named __proto__ too; they have a test of their own.
        if (json.includes('__proto__') || json.includes('\\ud')) return;
        assert.equal(JSON.stringify(parseJson(Buffer.from(json))), json);
      },
    ),
  );
});

test('a name with an escape is read as it is, whatever names were read before', () => {
  // Node 24 reads the second name of each pair as the first.
  for (const [before, name, json] of [
    ['\\\\', '"', '\\"'],
    ['k\\\\', 'k\n', 'k\\n'],
    ['\\\\u0', 'été', '\\u00e9t\\u00e9'],
    ['~\\\\', '~"', '~\\"'],
  ] as const) {
    parseJson(`{"h":[],"${before}":0}`);
    assert.deepEqual(Object.keys(parseJson(`{"h":1,"${json}" :2}`) as object), ['h', name], before);
  }
  // What JavaScript orders, and a name that looks like it.
  for (const names of ['"\\n":1,"5000000000":2,"b":3', '"7":0,"\\n":1,"4294967295":2,"b":3'])
    assert.equal(JSON.stringify(parseJson(`{${names}}`)), `{${names}}`, names);
  // The last value counts, in the place of the first, however the name is written.
  for (const [text, same] of [
    ['{"~":1,"\\u007e":2,"~":3}', '{"~":3}'],
    ['{"\\n":1,"b":2,"\\u000a":3,"\\n":4}', '{"\\n":4,"b":2}'],
    ['{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
  ] as const) {
    assert.equal(JSON.stringify(parseJson(text)), same);
  }
  const name = fc.string({
    unit: fc.constantFrom(...'\\ " ~ 0 1 u \n k é'.split(' ')),
    maxLength: 4,
  });
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      name,
      fc.dictionary(name, tie('value')) as fc.Arbitrary<Json>,
      fc.array(tie('value'), { maxLength: 2 }),
    ),
  }));
  fc.assert(
    fc.property(value, (written) => {
      const json = JSON.stringify(written);
      assert.equal(JSON.stringify(parseJson(json)), json);
      // The same value: another spelling of a character, and white space.
      const spelled = json.replaceAll('é', '\\u00E9').replaceAll('":', '" \n:');
      assert.equal(JSON.stringify(parseJson(spelled)), JSON.stringify(parseJson(json)));
    }),
    { numRuns: cases(2_000) },
  );
});

test('bytes that are no UTF-8 are refused, wherever they stand', () => {
  for (const bytes of ['ff', 'c0af', 'eda080', 'f4908080', 'e282', 'f8888080', '80']) {
    const bad = Buffer.from(bytes, 'hex');
    assert.ok(isRefused(Buffer.concat([Buffer.from('"'), bad, Buffer.from('"')])), bytes);
    assert.ok(isRefused(Buffer.concat([Buffer.from('{}'), bad])), bytes);
  }
});

test('a byte order mark in front is ignored, elsewhere it is not JSON; nothing is called that', () => {
  assert.deepEqual(parseJson('\uFEFF{}'), {});
  for (const text of ['\uFEFF\uFEFF{}', '{\uFEFF}']) assert.ok(isRefused(text), text);
  for (const nothing of ['', '\uFEFF']) assert.throws(() => parseJson(nothing), /it is empty/);
});

test('64 levels are read, 65 are not, whatever they are made of (R10)', () => {
  const nest = (depth: number, open: string, close: string): string =>
    open.repeat(depth) + '0' + close.repeat(depth);
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    assert.ok(!isRefused(nest(jsonDepthMax, open, close)), open);
    assert.ok(isRefused(nest(jsonDepthMax + 1, open, close)), open);
    assert.ok(isRefused(nest(100_000, open, close)), open);
  }
  // Levels side by side do not add up, and brackets in strings are none.
  assert.ok(!isRefused(`[${Array.from({ length: 1_000 }, () => '[[]]').join(',')}]`));
  assert.ok(!isRefused(`"${'['.repeat(100)}"`));
  assert.ok(!isRefused(JSON.stringify([`\\"${'{'.repeat(100)}\\`, '\\\\', '"'])));
});

test('50,000 values and names of members are read, one more is 413 (R39)', () => {
  const list = (item: string, count: number): string =>
    `[${Array.from({ length: count }, () => item).join(',')}]`;
  const member = (count: number): string =>
    `{${Array.from({ length: count }, (_, index) => `"m${index}":0`).join(', ')}}`;
  for (const item of ['0', '-1.5e3', '""', '"a,\\"b"', '{}', '[ ]', 'null', 'true', 'false']) {
    assert.ok(!isRefused(list(item, jsonValuesMax - 1)), item);
    assert.ok(isRefused(list(item, jsonValuesMax), 'content_too_large'), item);
  }
  assert.ok(!isRefused(member(jsonValuesMax / 2 - 1)));
  assert.ok(isRefused(member(jsonValuesMax / 2), 'content_too_large'));
});

test('a member named __proto__ is refused in every spelling and at every depth (R10)', () => {
  const spellings = [
    '__proto__',
    '\\u005f_proto__',
    '\\u005F\\u005f\\u0070\\u0072\\u006f\\u0074\\u006f\\u005f\\u005f',
    '__pr\\u006Fto__',
  ];
  for (const name of spellings) {
    for (const json of [`{"${name}":1}`, `[{"a":[{"b":{"${name}":null}}]}]`, `{"${name}":{}}`])
      assert.ok(isRefused(json), json);
    assert.ok(!isRefused(`["${name}", {"a":"${name}", "${name}x": 1}]`), name);
  }
  const others = { constructor: 1, prototype: 2 };
  assert.deepEqual(parseJson(JSON.stringify(others)), others);
});

test('a lone surrogate is refused in values and names, a pair is text', () => {
  for (const lone of ['\\ud800', '\\uDC00', '\\udc00\\ud800', 'a\\ud83d', '\\ud83d\\u0041']) {
    assert.ok(isRefused(`"${lone}"`), lone);
    assert.ok(isRefused(`[{"${lone}":1}]`), lone);
  }
  assert.equal(parseJson('"\\ud83d\\ude00"'), '\u{1F600}');
});

/** `digits · 10^power` in two integers that can be compared. */
function sameValue(one: Decimal, other: Decimal): boolean {
  const least = Math.min(one.power, other.power);
  const scale = ({ digits, power }: Decimal): bigint => digits * 10n ** BigInt(power - least);
  return scale(one) === scale(other);
}

interface Decimal {
  readonly digits: bigint;
  readonly power: number;
}

/** By the grammar of RFC 8259 §6, without a double in between. */
function toDecimal(token: string): Decimal {
  const [mantissa = '', exponent = '0'] = token.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), power: Number(exponent) - fraction.length };
}

const numberToken = fc.stringMatching(/^-?(?:0|[19]\d{0,24})(?:\.\d{1,24})?(?:[eE][+-]?\d{1,3})?$/);
/** About as many digits as a double always keeps, and exponents over all that it can hold. */
const shortToken = fc.stringMatching(
  /^-?(?:0|1|9|5|123)(?:\.\d{1,15})?[eE](?:[+-]0)?(?:-?(?:[12]?\d{1,2}|3[0-4]\d)|)$/,
);
const doubleToken = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => `${value}`);
const anyToken = fc.oneof(numberToken, shortToken, doubleToken, fc.bigInt().map(String));

test('a number is kept exactly or refused: never rounded, never null', () => {
  fc.assert(
    fc.property(anyToken, (token) => {
      const value = Number(token);
      // The shortest form, and up to 17 digits, as the double is written with as many (R10). They
      // differ where a double lies between two decimals: 624210308955845.2 and .3 name .25.
      const forms = Array.from({ length: 17 }, (_, at) => value.toPrecision(at + 1));
      const exact =
        Number.isFinite(value) &&
        [`${value}`, ...forms].some((form) => sameValue(toDecimal(token), toDecimal(form)));
      assert.equal(isRefused(`[${token}]`), !exact, token);
      if (exact) assert.ok(Number(JSON.stringify(parseJson(token))) === value, token);
    }),
    { numRuns: cases(3_000) },
  );
});

test('numbers at the edge of a double are told apart', () => {
  for (const token of ['9007199254740992', '1e308', '5e-324', '0.1', '-0', '0e999999'])
    assert.ok(!isRefused(token), token);
  const refused = ['1e400', '-1e400', '1e-400', '9007199254740993', '9007199254740993e0'];
  // The last has 12 digits, of which a number so tiny keeps fewer.
  const others = ['0.1000000000000000055', '1e99999999999999999999', '1.23456789012e-318'];
  for (const token of [...refused, ...others]) assert.ok(isRefused(token), token);
});
