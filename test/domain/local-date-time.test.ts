/** Local date-times by a table of texts that are read and texts that are refused (R17). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatLocalDateTime, parseLocalDateTime } from '../../dist/domain/scalars.js';
import { cases } from '../support/long.js';

const accepted: readonly (readonly [string, string])[] = [
  ['2024-05-01T10:15:00', '2024-05-01T10:15:00'],
  ['2024-05-01T10:15', '2024-05-01T10:15:00'],
  ['2024-05-01t10:15:30', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30.', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30.120', '2024-05-01T10:15:30.12'],
  ['2024-05-01T10:15:30.000000000', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30.123456789', '2024-05-01T10:15:30.123456789'],
  ['2024-05-01T10:15:30.000000001', '2024-05-01T10:15:30.000000001'],
  ['2024-05-01T10:15:30Z', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30z', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15Z', '2024-05-01T10:15:00'],
  ['2024-05-01T10:15:30+01:00', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30-05:30', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30+01:00:01', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30+18:00', '2024-05-01T10:15:30'],
  ['2024-05-01T23:59:59.9-18:00', '2024-05-01T23:59:59.9'],
  ['2024-05-01T10:15:30+01:00[Europe/Paris]', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30Z[UTC]', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30-03:00[America/Argentina/Buenos_Aires]', '2024-05-01T10:15:30'],
  ['2024-05-01T10:15:30+05:00[Etc/GMT-5]', '2024-05-01T10:15:30'],
  ['2024-02-29T00:00:00', '2024-02-29T00:00:00'],
  ['2000-02-29T00:00:00', '2000-02-29T00:00:00'],
  ['2024-12-31T23:59:59', '2024-12-31T23:59:59'],
  ['0000-01-01T00:00', '0000-01-01T00:00:00'],
  ['-0001-01-01T00:00', '-0001-01-01T00:00:00'],
  ['-0004-02-29T00:00', '-0004-02-29T00:00:00'],
  ['+12345-01-01T00:00', '+12345-01-01T00:00:00'],
  ['+02024-01-01T00:00', '2024-01-01T00:00:00'],
  ['-02024-01-01T00:00', '-2024-01-01T00:00:00'],
  ['+999999999-12-31T23:59:59', '+999999999-12-31T23:59:59'],
];

const refused: readonly string[] = [
  '',
  'yesterday',
  '2024-05-01',
  '10:15:00',
  '2024-05-01 10:15:00',
  '2024-05-01T10',
  '2024-05-01T1:15',
  '2024-5-1T10:15',
  '24-05-01T10:15',
  '20240501T101500',
  '12024-01-01T00:00',
  '+2024-01-01T00:00',
  '-0000-01-01T00:00',
  '+1000000000-01-01T00:00',
  '2024-00-10T10:15',
  '2024-13-10T10:15',
  '2024-05-00T10:15',
  '2024-05-32T10:15',
  '2024-04-31T10:15',
  '2024-02-30T10:15:00',
  '2023-02-29T10:15:00',
  '1900-02-29T10:15:00',
  '2024-05-01T24:00:00',
  '2024-05-01T10:60:00',
  '2024-05-01T10:15:60',
  '2024-05-01T10:15.5',
  '2024-05-01T10:15:30.1234567890',
  '2024-05-01T10:15:30,5',
  '2024-05-01T10:15:30+01',
  '2024-05-01T10:15:30+0100',
  '2024-05-01T10:15:30+1:00',
  '2024-05-01T10:15:30+18:01',
  '2024-05-01T10:15:30+10:60',
  '2024-05-01T10:15:30[Europe/Paris]',
  '2024-05-01T10:15:30Z[]',
  '2024-05-01T10:15:30Z[Europe Paris]',
  '2024-05-01T10:15:30ZZ',
  '2024-05-01T10:15:30 ',
  ' 2024-05-01T10:15:30',
  '2024-05-01T10:15:30\n',
  '２０２４-05-01T10:15:30',
  `2024-05-01T10:15:30Z[${'a'.repeat(100)}]`,
];

for (const [given, written] of accepted) {
  test(`reads ${given} as ${written}`, () => {
    assert.equal(parseLocalDateTime(given), written);
  });
}

for (const given of refused) {
  test(`refuses ${JSON.stringify(given.slice(0, 50))}`, () => {
    assert.equal(parseLocalDateTime(given), undefined);
  });
}

test('writes what it wrote: a second reading changes nothing', () => {
  for (const [, written] of accepted) assert.equal(parseLocalDateTime(written), written);
});

test('a date is written as a UTC clock shows it, with the shortest fraction', () => {
  assert.equal(formatLocalDateTime(new Date(0)), '1970-01-01T00:00:00');
  assert.equal(formatLocalDateTime(new Date('2024-05-01T10:15:30.120Z')), '2024-05-01T10:15:30.12');
  assert.equal(
    formatLocalDateTime(new Date('2024-05-01T10:00:00.005Z')),
    '2024-05-01T10:00:00.005',
  );
  assert.equal(formatLocalDateTime(new Date('2024-05-01T12:00:00+02:00')), '2024-05-01T10:00:00');
});

test('years outside 0 to 9999 keep their sign', () => {
  assert.equal(formatLocalDateTime(new Date(Date.UTC(12_345, 0, 1))), '+12345-01-01T00:00:00');
  assert.equal(formatLocalDateTime(new Date(Date.UTC(-5, 0, 1))), '-0005-01-01T00:00:00');
});

test('every date that is written can be read, and stands for the same instant', () => {
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true }), (date) => {
      const written = formatLocalDateTime(date);
      assert.equal(parseLocalDateTime(written), written);
    }),
  );
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }), (date) => {
      assert.equal(Date.parse(`${formatLocalDateTime(date)}Z`), date.getTime());
    }),
  );
});

test('a date-time without offset is read as the same one with an offset, or refused as it is', () => {
  const number = (length: number, max: number): fc.Arbitrary<string> =>
    fc.nat({ max }).map((value) => String(value).padStart(length, '0'));
  const digits = fc.string({ unit: fc.constantFrom('0', '1', '9'), maxLength: 10 });
  const texts = fc
    .record({
      date: fc.tuple(number(4, 10_000), number(2, 13), number(2, 32)),
      clock: fc.tuple(number(2, 24), number(2, 60), number(2, 60)),
      fraction: fc.option(digits),
    })
    .map(({ date, clock, fraction }) => {
      const end = fraction === null ? '' : `.${fraction}`;
      return `${date.join('-')}T${clock.join(':')}${end}`;
    });
  fc.assert(
    fc.property(texts, (text) => {
      assert.equal(parseLocalDateTime(text), parseLocalDateTime(`${text}Z`));
    }),
    { numRuns: cases(2_000) },
  );
});
