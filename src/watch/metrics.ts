/**
 * Metrics in the text format of Prometheus. Label values come from the program, never from a
 * client, and are few.
 */

/** A label, and those of its values that begin with 0. */
export interface LabelValues<V> {
  readonly label: string;
  readonly values: readonly V[];
}

export type Metrics = ReturnType<typeof createMetrics>;

/** Upper limits in seconds. */
const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30] as const;

export function createMetrics() {
  const families: (() => readonly string[])[] = [];
  const add = (name: string, [type, help]: readonly string[], toLines: () => string[]): void => {
    const head = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    families.push(() => [...head, ...toLines()]);
  };

  return {
    /** A number that only increases, for each of these values of the label. */
    counter: <V extends string>(name: string, help: string, { label, values }: LabelValues<V>) => {
      const counts = new Map(values.map((value) => [value, 0]));
      add(name, ['counter', help], () =>
        Array.from(counts, ([value, count]) => `${name}{${label}="${value}"} ${count}`),
      );
      return (value: V): void => void counts.set(value, (counts.get(value) ?? 0) + 1);
    },
    /** A duration. The returned function adds one, given a value without comma for each label. */
    histogram: (name: string, help: string, labels: readonly string[]) => {
      const all = new Map<string, Histogram>();
      add(name, ['histogram', help], () =>
        Array.from(all.values()).flatMap((series) => series.toLines(name)),
      );
      return (milliseconds: number, ...values: readonly string[]): void => {
        const key = values.join();
        let series = all.get(key);
        if (series === undefined) {
          series = new Histogram(labels.map((label, at) => `${label}="${values[at]}"`).join());
          all.set(key, series);
        }
        series.add(milliseconds / 1000);
      };
    },
    /** A number that `read` returns when the metrics are requested. */
    gauge: (name: string, help: string, read: () => number): void => {
      add(name, ['gauge', help], () => [`${name} ${read()}`]);
    },
    /** A constant 1 with a label, which describes the program. */
    info: (name: string, help: string, label: string): void => {
      add(name, ['gauge', help], () => [`${name}{${label}} 1`]);
    },
    toText: (): string => `${families.flatMap((toLines) => toLines()).join('\n')}\n`,
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

  toLines(name: string): string[] {
    const labels = this.#labels;
    let count = 0;
    const lines = this.#counts.map((inBucket, at) => {
      count += inBucket;
      return `${name}_bucket{${labels},le="${buckets[at] ?? '+Inf'}"} ${count}`;
    });
    return [...lines, `${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${count}`];
  }
}
