/**
 * The log: one line per event, with a limit per second. Facts are data: JSON.stringify escapes
 * control characters, so that no client can forge a line.
 */

import type { Writable } from 'node:stream';

export type LogLevel = 'info' | 'warn' | 'error';

/** Facts of an event, with `requestId` if a request caused it. Never a password or a token. */
export type LogFacts = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  (level: LogLevel, event: string, facts?: LogFacts): void;
}

/** Events of requests and sockets, which LOG_REQUESTS selects. */
export const requestEvents = ['request', 'websocket closed'] as const;
/** Events that say who did what (R53): a line each, whatever LOG_REQUESTS says. */
export const deeds = ['change', 'login', 'login failed', 'refresh', 'refused'] as const;

export interface LogOptions {
  /** Lines written in one second; further lines are counted, and the count is logged. */
  readonly linesPerSecondMax: number;
  readonly now: () => Date;
  /** Events whose lines have no limit: `write` is given them through `hold`, in larger pieces. */
  readonly unlimited?: ReadonlySet<string>;
  readonly hold?: (line: string) => boolean;
  /** `pretty` is for terminals. */
  readonly format?: 'json' | 'pretty';
}

/**
 * `write` receives each line with its line feed. Lines for which it returns false were dropped, and
 * are counted and reported like those beyond the limit.
 */
export function createLog(write: (line: string) => boolean, options: LogOptions): Log {
  const { linesPerSecondMax, now, unlimited, hold = write, format = 'json' } = options;
  const toText = format === 'json' ? toJson : toPretty;
  let second = 0;
  let lines = 0;
  // Cached for the lines of one millisecond: formatting it takes half the time of a line.
  let stamp = { milliseconds: Number.NaN, text: '' };
  let dropped = 0;
  const put = (record: LogRecord, to = write): boolean => to(`${toText(stamp.text, record)}\n`);

  return (level, event, facts = {}) => {
    const time = now();
    const milliseconds = time.getTime();
    if (milliseconds !== stamp.milliseconds) stamp = { milliseconds, text: time.toISOString() };
    const thisSecond = Math.floor(milliseconds / 1000);
    if (thisSecond !== second) {
      const lost = { level: 'warn', event: 'log lines dropped', facts: { dropped } } as const;
      if (dropped > 0 && put(lost)) dropped = 0;
      second = thisSecond;
      lines = 0;
    }
    const isUnlimited = unlimited?.has(event) === true;
    if (!isUnlimited) lines += 1;
    const isWanted = isUnlimited || lines <= linesPerSecondMax;
    if (!isWanted || !put({ level, event, facts }, isUnlimited ? hold : write)) dropped += 1;
  };
}

const countedSeconds = 60;
const countedMax = 10_000;

/**
 * A log for events that clients can cause at will. Of equal events within a minute, only the 1st,
 * 2nd, 4th, 8th … is logged, with their count. `now`: milliseconds.
 */
export function createCountedLog(log: Log, now: () => number) {
  const counts = new Map<string, number>();
  let end = 0;
  return (event: string, facts: LogFacts): void => {
    if (now() >= end || counts.size >= countedMax) {
      counts.clear();
      end = now() + countedSeconds * 1000;
    }
    const key = JSON.stringify([event, facts]);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (Number.isInteger(Math.log2(count))) log('warn', event, { ...facts, count });
  };
}

interface LogRecord {
  readonly level: LogLevel;
  readonly event: string;
  readonly facts: LogFacts;
}

/** Not `JSON.stringify`, which takes twice as long: every request may write a line. */
function toJson(time: string, { level, event, facts }: LogRecord): string {
  let text = `{"time":"${time}","level":"${level}","event":${quote(event)}`;
  for (const name in facts) {
    const value = facts[name];
    if (typeof value === 'string') text += `,"${name}":${quote(toCut(value))}`;
    else if (value !== undefined) text += `,"${name}":${JSON.stringify(value)}`;
  }
  return `${text}}`;
}

/** `12:30:01.250 INFO  listening url=http://localhost:8080`, in UTC. */
function toPretty(time: string, { level, event, facts }: LogRecord): string {
  const words = Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${toWord(toCut(value))}`);
  return [time.slice(11, 23), level.toUpperCase().padEnd(5), event, ...words].join(' ');
}

function toWord(value: unknown): string {
  const text = String(value);
  return /^[^\s"=\p{Cc}]+$/u.test(text) ? text : quote(text);
}

/** Longer values are truncated: log lines are for reading. */
const valueLengthMax = 2_000;

function toCut<T>(value: T): T | string {
  if (typeof value !== 'string' || value.length <= valueLengthMax) return value;
  return `${value.slice(0, valueLengthMax)}…`;
}

/** Text that needs no escapes in JSON, at a terminal or in a line reader. */
const plain = /^[ !#-[\]-~]*$/;
/** Not escaped by JSON.stringify, but special elsewhere: DEL, C1, U+2028 and U+2029. */
const terminalControls = /[\u007f-\u009f\u2028\u2029]/g;

function quote(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  return JSON.stringify(text).replaceAll(terminalControls, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export type LogOutput = ReturnType<typeof createLogOutput>;

/** Characters that may be queued in memory for the reader of the log. */
const unreadLengthMax = 1024 * 1024;
/** Limits for held lines: characters, and time. */
const heldLengthMax = 65_536;
const heldMilliseconds = 50;

/**
 * Call `flush` when the process exits. A closed output, or a pipe that nobody reads, must neither
 * stop the service nor fill its memory: lines are dropped instead.
 */
export function createLogOutput(output: Writable) {
  let isOpen = true;
  let held = '';
  output.on('error', () => {
    isOpen = false;
  });
  const canTake = (): boolean => isOpen && output.writableLength <= unreadLengthMax;
  const flush = (): void => {
    if (isOpen && held !== '') output.write(held);
    held = '';
  };
  return {
    flush,
    /** Writes immediately, after the lines that are held. Returns false if the line was dropped. */
    write: (line: string): boolean => {
      if (!canTake()) return false;
      output.write(held + line);
      held = '';
      return true;
    },
    /** Writes soon, or when the process exits: a write costs more than formatting the line. */
    hold: (line: string): boolean => {
      if (!canTake()) return false;
      if (held === '') setTimeout(flush, heldMilliseconds).unref();
      held += line;
      if (held.length > heldLengthMax) flush();
      return true;
    },
  };
}
