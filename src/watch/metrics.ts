/**
 * Metrics in the text format of Prometheus. Label values come from the program, never from a
 * client, and are few.
 */

export interface Metrics {
  /** A number that only increases, for each value of the label; those of `values` begin with 0. */
  readonly counter: (name: string, help: string, label: LabelValues) => (value: string) => void;
  /** A duration. The returned function adds one, given a value for each label. */
  readonly histogram: (name: string, help: string, labels: readonly string[]) => AddDuration;
  /** A number that `read` returns when the metrics are requested. */
  readonly gauge: (name: string, help: string, read: () => number) => void;
  /** A constant 1 with labels, which describe the program. */
  readonly info: (name: string, help: string, labels: Readonly<Record<string, string>>) => void;
  readonly toText: () => string;
}

export interface LabelValues {
  readonly label: string;
  readonly values: readonly string[];
}

/** No value contains a comma. */
export type AddDuration = (seconds: number, ...values: readonly string[]) => void;

/** Upper limits in seconds. */
const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30] as const;

export function createMetrics(): Metrics {
  const families: (() => readonly string[])[] = [];
  const add = (
    { name, help, type }: Readonly<Record<'name' | 'help' | 'type', string>>,
    toLines: () => readonly string[],
  ): void => {
    const head = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    families.push(() => [...head, ...toLines()]);
  };

  return {
    counter(name, help, { label, values }) {
      const counts = new Map(values.map((value) => [value, 0]));
      add({ name, help, type: 'counter' }, () =>
        Array.from(counts, ([value, count]) => `${name}{${label}="${value}"} ${count}`),
      );
      return (value) => void counts.set(value, (counts.get(value) ?? 0) + 1);
    },
    histogram(name, help, labels) {
      const all = new Map<string, Histogram>();
      add({ name, help, type: 'histogram' }, () =>
        Array.from(all.values()).flatMap((series) => series.toLines(name)),
      );
      return (seconds, ...values) => {
        const key = values.join();
        let series = all.get(key);
        if (series === undefined) {
          series = new Histogram(labels.map((label, at) => `${label}="${values[at]}"`).join());
          all.set(key, series);
        }
        series.add(seconds);
      };
    },
    gauge(name, help, read) {
      add({ name, help, type: 'gauge' }, () => [`${name} ${read()}`]);
    },
    info(name, help, labels) {
      const text = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      add({ name, help, type: 'gauge' }, () => [`${name}{${text.join()}} 1`]);
    },
    toText: () => `${families.flatMap((toLines) => toLines()).join('\n')}\n`,
  };
}

class Histogram {
  readonly #labels: string;
  /** The count of each bucket, not cumulative; the last bucket has no upper limit. */
  readonly #counts: number[] = [...buckets, Infinity].map(() => 0);
  #sum = 0;

  constructor(labels: string) {
    this.#labels = labels;
  }

  add(seconds: number): void {
    let at = 0;
    while (seconds > (buckets[at] ?? Infinity)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += seconds;
  }

  toLines(name: string): readonly string[] {
    const labels = this.#labels;
    let count = 0;
    const lines = this.#counts.map((inBucket, at) => {
      count += inBucket;
      return `${name}_bucket{${labels},le="${buckets[at] ?? '+Inf'}"} ${count}`;
    });
    return [...lines, `${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${count}`];
  }
}
