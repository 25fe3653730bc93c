/** Local date-times, by tables of texts that are read and texts that are refused (R17). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatLocalDateTime, parseLocalDateTime } from '../../dist/domain/local-date-time.js';
import { words } from '../support/lists.ts';
import { cases } from '../support/long.ts';

/** By what is written of them. */
const accepted: Readonly<Record<string, string>> = {
  '2024-05-01T10:15:00': '2024-05-01T10:15:00 2024-05-01T10:15 2024-05-01T10:15Z',
  '2024-05-01T10:15:30': `
    2024-05-01t10:15:30 2024-05-01T10:15:30. 2024-05-01T10:15:30.000000000 2024-05-01T10:15:30Z
    2024-05-01T10:15:30z 2024-05-01T10:15:30+01:00 2024-05-01T10:15:30-05:30
    2024-05-01T10:15:30+01:00:01 2024-05-01T10:15:30+18:00 2024-05-01T10:15:30Z[UTC]
    2024-05-01T10:15:30+01:00[Europe/Paris] 2024-05-01T10:15:30+05:00[Etc/GMT-5]
    2024-05-01T10:15:30-03:00[America/Argentina/Buenos_Aires]`,
  '2024-05-01T10:15:30.12': '2024-05-01T10:15:30.120',
  '2024-05-01T10:15:30.123456789': '2024-05-01T10:15:30.123456789',
  '2024-05-01T10:15:30.000000001': '2024-05-01T10:15:30.000000001',
  '2024-05-01T23:59:59.9': '2024-05-01T23:59:59.9-18:00',
  '2024-02-29T00:00:00': '2024-02-29T00:00:00',
  '2000-02-29T00:00:00': '2000-02-29T00:00:00',
  '2024-12-31T23:59:59': '2024-12-31T23:59:59',
  '0000-01-01T00:00:00': '0000-01-01T00:00',
  '-0001-01-01T00:00:00': '-0001-01-01T00:00',
  '-0004-02-29T00:00:00': '-0004-02-29T00:00',
  '+12345-01-01T00:00:00': '+12345-01-01T00:00',
  '2024-01-01T00:00:00': '+02024-01-01T00:00',
  '-2024-01-01T00:00:00': '-02024-01-01T00:00',
  '+999999999-12-31T23:59:59': '+999999999-12-31T23:59:59',
};

const withBlanks = ['2024-05-01 10:15:00', '2024-05-01T10:15:30 ', ' 2024-05-01T10:15:30'];
withBlanks.push('2024-05-01T10:15:30\n', '2024-05-01T10:15:30Z[Europe Paris]');
const refused: readonly string[] = [
  '',
  ...withBlanks,
  ...words(`
    yesterday 2024-05-01 10:15:00 2024-05-01T10 2024-05-01T1:15 2024-5-1T10:15 24-05-01T10:15
    20240501T101500 12024-01-01T00:00 +2024-01-01T00:00 -0000-01-01T00:00 +1000000000-01-01T00:00
    2024-00-10T10:15 2024-13-10T10:15 2024-05-00T10:15 2024-05-32T10:15 2024-04-31T10:15
    2024-02-30T10:15:00 2023-02-29T10:15:00 1900-02-29T10:15:00 2024-05-01T24:00:00
    2024-05-01T10:60:00 2024-05-01T10:15:60 2024-05-01T10:15.5 2024-05-01T10:15:30.1234567890
    2024-05-01T10:15:30,5 2024-05-01T10:15:30+01 2024-05-01T10:15:30+0100 2024-05-01T10:15:30+1:00
    2024-05-01T10:15:30+18:01 2024-05-01T10:15:30+10:60 2024-05-01T10:15:30[Europe/Paris]
    2024-05-01T10:15:30Z[] 2024-05-01T10:15:30ZZ ２０２４-05-01T10:15:30
    2024-05-01T10:15:30Z[${'a'.repeat(100)}]
  `),
];

test('a date-time is read in every form that is accepted, and in no other', () => {
  for (const [written, texts] of Object.entries(accepted)) {
    for (const given of words(texts)) assert.equal(parseLocalDateTime(given), written, given);
  }
  for (const given of refused) assert.equal(parseLocalDateTime(given), undefined, given);
});

test('a date is written as a UTC clock shows it, with the shortest fraction', () => {
  for (const [written, date] of Object.entries({
    '1970-01-01T00:00:00': 0,
    '2024-05-01T10:15:30.12': '2024-05-01T10:15:30.120Z',
    '2024-05-01T10:00:00.005': '2024-05-01T10:00:00.005Z',
    '2024-05-01T10:00:00': '2024-05-01T12:00:00+02:00',
    '+12345-01-01T00:00:00': Date.UTC(12_345, 0, 1),
    '-0005-01-01T00:00:00': Date.UTC(-5, 0, 1),
  })) {
    assert.equal(formatLocalDateTime(new Date(date)), written, written);
  }
});

test('every date that is written can be read, and stands for the same instant', () => {
  const any = fc.date({ noInvalidDate: true });
  const usual = fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) });
  const exact = fc.property(any, usual, (date, near) => {
    const written = formatLocalDateTime(date);
    assert.equal(parseLocalDateTime(written), written);
    assert.equal(Date.parse(`${formatLocalDateTime(near)}Z`), near.getTime());
  });
  fc.assert(exact);
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
