/**
 * The log: one JSON line per event, bounded under a flood. Values are data: JSON.stringify escapes
 * their control characters, so that no client can forge a line.
 */

export type LogLevel = 'info' | 'warn' | 'error';

/** Facts of an event; `requestId` where a request caused it. Never a password or a token. */
export type LogFacts = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  (level: LogLevel, event: string, facts?: LogFacts): void;
}

export interface LogOptions {
  /** Lines let through in one second; those beyond are counted and reported in one line. */
  readonly linesPerSecondMax: number;
  readonly now: () => Date;
}

/** A value longer than this is cut: a log line is for reading. */
const valueLengthMax = 2_000;

/** Where finished lines go, with their line feed; false where one is not taken. */
export type LineWriter = (line: string) => boolean;

/** A line that `write` does not take is counted and reported like those beyond the limit. */
export function createLog(write: LineWriter, options: LogOptions): Log {
  let second = 0;
  let lines = 0;
  let dropped = 0;

  return (level, event, facts = {}) => {
    const time = options.now();
    const thisSecond = Math.floor(time.getTime() / 1000);
    if (thisSecond !== second) {
      const report = { level: 'warn', event: 'log lines dropped', dropped };
      if (dropped > 0 && write(toLine(time, report))) dropped = 0;
      second = thisSecond;
      lines = 0;
    }
    lines += 1;
    const isTaken =
      lines <= options.linesPerSecondMax && write(toLine(time, { level, event, ...facts }));
    if (!isTaken) dropped += 1;
  };
}

function toLine(time: Date, facts: LogFacts): string {
  const cut = (_key: string, value: unknown): unknown =>
    typeof value === 'string' && value.length > valueLengthMax
      ? `${value.slice(0, valueLengthMax)}…`
      : value;
  const line = JSON.stringify({ time: time.toISOString(), ...facts }, cut);
  return `${line.replaceAll(terminalControls, toEscape)}\n`;
}

/** What JSON leaves as it is, and a terminal or a reader of lines does not: DEL, C1, U+2028/9. */
const terminalControls = /[\u007f-\u009f\u2028\u2029]/g;

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
