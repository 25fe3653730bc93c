/** Metrics in the text format of Prometheus: counters, histograms of durations, and gauges. */

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const families: (() => readonly string[])[] = [];
  const add = (name: string, [type, help]: readonly string[], toLines: () => string[]): void => {
    const head = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    families.push(() => [...head, ...toLines()]);
  };

  return {
    add,
    /** A number that only increases, for each of these values of the label, from 0 on. */
    counter<V extends string>(
      name: string,
      help: string,
      { label, values }: { readonly label: string; readonly values: readonly V[] },
    ) {
      const counts = new Map(values.map((value) => [value, 0]));
      add(name, ['counter', help], () =>
        Array.from(counts, ([value, count]) => `${name}{${label}="${value}"} ${count}`),
      );
      return (value: V): void => void counts.set(value, (counts.get(value) ?? 0) + 1);
    },
    /** A duration. The returned function adds one, given a value without comma for each label. */
    histogram(name: string, help: string, labels: readonly string[]) {
      const all = new Map<string, Series>();
      add(name, ['histogram', help], () =>
        [...all.values()].flatMap((one) => toSeriesLines(name, one)),
      );
      return (milliseconds: number, ...values: readonly string[]): void => {
        const key = values.join();
        let series = all.get(key);
        if (series === undefined) {
          const pairs = labels.map((label, at) => `${label}="${values[at]}"`).join();
          series = { labels: pairs, counts: [...buckets, Infinity].map(() => 0), sum: 0 };
          all.set(key, series);
        }
        const seconds = milliseconds / 1000;
        let at = 0;
        while (seconds > (buckets[at] ?? Infinity)) at += 1;
        series.counts[at] = (series.counts[at] ?? 0) + 1;
        series.sum += seconds;
      };
    },
    /** A number that `read` returns when the metrics are requested. */
    gauge: (name: string, help: string, read: () => number): void => {
      add(name, ['gauge', help], () => [`${name} ${read()}`]);
    },
    toText: (): string => `${families.flatMap((lines) => lines()).join('\n')}\n`,
  };
}

/** Upper limits in seconds. */
const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30] as const;

/** The durations with equal values of the labels. */
interface Series {
  readonly labels: string;
  /** The count of each bucket, not cumulative; the last bucket has no upper limit. */
  readonly counts: number[];
  sum: number;
}

function toSeriesLines(name: string, { labels, counts, sum }: Series): string[] {
  let count = 0;
  const lines = counts.map((inBucket, at) => {
    count += inBucket;
    return `${name}_bucket{${labels},le="${buckets[at] ?? '+Inf'}"} ${count}`;
  });
  return [...lines, `${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${count}`];
}
