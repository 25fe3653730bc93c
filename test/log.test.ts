import assert from 'node:assert/strict';
import { PassThrough, Writable } from 'node:stream';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { anyCharacter } from './support/texts.ts';
import { createCountedLog, createLog, createLogOutput, type LogOptions } from '../dist/log.js';

function collect(linesPerSecondMax: number, options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  let time = 0;
  let takes = true;
  const now = (): Date => new Date(time);
  const write = (line: string): boolean => {
    if (takes) lines.push(line);
    return takes;
  };
  const log = createLog(write, { linesPerSecondMax, now, ...options });
  return {
    log,
    lines,
    /** From now on, whether a line is taken. */
    take: (isTaken: boolean) => void (takes = isTaken),
    /** Sets the clock, in milliseconds. */
    at: (milliseconds: number) => void (time = milliseconds),
  };
}

test('65,536 characters of lines are held, one more writes them', () => {
  const output = new PassThrough({ highWaterMark: 1_000_000 });
  const { hold } = createLogOutput(output);
  for (let count = 0; count < 64; count += 1) hold('x'.repeat(1_024));
  assert.equal(output.readableLength, 0);
  hold('y');
  assert.equal(output.readableLength, 65_537);
});

test('of what nobody reads no more is queued beyond a mebibyte', () => {
  const output = new Writable({ write: () => undefined });
  const { write } = createLogOutput(output);
  const line = 'x'.repeat(1_024);
  for (let count = 0; count < 1_025; count += 1) assert.equal(write(line), true);
  assert.equal(write(line), false);
  assert.equal(output.writableLength, 1_025 * 1_024);
});

test('an event is one JSON line with its time, level, name and facts', () => {
  const { log, lines, at } = collect(1);
  at(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  log('info', 'listening', { url: 'http://a', count: 3, ready: true, absent: undefined });
  assert.deepEqual(lines, [
    '{"time":"2026-01-02T03:04:05.006Z","level":"info","event":"listening","url":"http://a","count":3,"ready":true}\n',
  ]);
});

test('a value of 2,000 characters is whole, and a longer one is cut with a mark', () => {
  const { log, lines } = collect(1);
  log('info', 'e', { whole: 'x'.repeat(2_000), cut: 'y'.repeat(2_001) });
  const { whole, cut } = JSON.parse(lines[0] ?? '') as Record<'whole' | 'cut', string>;
  assert.deepEqual([whole, cut], ['x'.repeat(2_000), `${'y'.repeat(2_000)}…`]);
});

test('no value puts a control character or a second line into the log', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (value) => {
      const { log, lines } = collect(1);
      log('warn', 'e', { value });
      const [line = ''] = lines;
      assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\u2028\u2029]/u);
      assert.equal(line.at(-1), '\n');
      assert.equal((JSON.parse(line) as { value: string }).value, value);
      const pretty = collect(1, { format: 'pretty' });
      pretty.log('warn', 'e', { value });
      assert.doesNotMatch(pretty.lines[0]?.slice(0, -1) ?? '\n', /[\p{Cc}\u2028\u2029]/u);
    }),
  );
  const { log, lines } = collect(1);
  log('warn', 'e', { value: '\0\n\r\u001b[31m\u007f\u0085\u009b\u2028\u2029' });
  assert.match(lines[0] ?? '', /^[\x20-\x7e]+\n$/);
});

test('a long value is cut', () => {
  const { log, lines } = collect(1);
  log('error', 'e', { reason: `${'x'.repeat(1_999)}\u{1F600}${'y'.repeat(100_000)}` });
  assert.ok((lines[0]?.length ?? 0) < 2_200);
});

test('pretty: the time, the level, the event, then facts in one line', () => {
  const { log, lines, at } = collect(9, { format: 'pretty' });
  at(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  log('info', 'listening', { url: 'http://a:80', count: 3, absent: undefined });
  log('error', 'e', { reason: 'a "b"\n\u001b[31m\u009b=', empty: '' });
  assert.deepEqual(lines, [
    '03:04:05.006 INFO  listening url=http://a:80 count=3\n',
    '03:04:05.006 ERROR e reason="a \\"b\\"\\n\\u001b[31m\\u009b=" empty=""\n',
  ]);
});

test('what anybody can cause is a line at the 1st, 2nd, 4th … time in a minute', () => {
  const { log, lines } = collect(1_000);
  let time = 0;
  const counted = createCountedLog(log, () => time);
  for (let count = 0; count < 100; count += 1) counted('refused', { client: 'a' });
  counted('refused', { client: 'b' });
  time = 60_000;
  counted('refused', { client: 'a' });
  const told = lines.map((line) => JSON.parse(line) as { client: string; count: number });
  const found = told.map(({ client, count }) => `${client} ${count}`);
  assert.deepEqual(found, ['a 1', 'a 2', 'a 4', 'a 8', 'a 16', 'a 32', 'a 64', 'b 1', 'a 1']);
});

test('of many different events the counts are forgotten, not kept without end', () => {
  const { log, lines } = collect(100_000);
  const counted = createCountedLog(log, () => 0);
  for (let at = 0; at < 10_000; at += 1) counted('refused', { client: `${at}` });
  counted('refused', { client: '0' });
  assert.match(lines.at(-1) ?? '', /"count":1\}/);
});
