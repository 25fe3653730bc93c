import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { CommentOrder, type Poll } from '../../dist/store/postgres/comment-order.js';
import type { Comment } from '../../dist/store/model.js';
import { cases } from '../support/long.ts';

const limit = 3;

function toComment(seq: number): Comment {
  return { id: String(seq), content: '', createdAt: '', postId: '' };
}

interface Write {
  readonly seq: number;
  readonly xid: bigint;
  readonly own: boolean;
  state: 'open' | 'committed' | 'aborted' | 'removed';
  told: boolean;
}

/** A database with one sequence, as far as a feed can tell, and one node that watches it. */
class Model {
  readonly heard: string[] = [];
  readonly writes: Write[] = [];
  order: CommentOrder;
  time = 0;
  #poll: Poll | undefined;

  constructor(skipped: readonly number[] = []) {
    this.order = this.orderFrom({ skipped });
  }

  /** The order after a failover, or at the start. */
  orderFrom(start: { cursor?: number; timeline?: number; skipped?: readonly number[] } = {}) {
    return new CommentOrder({
      cursor: 0,
      skipped: [],
      timeline: 1,
      ...start,
      deliver: ({ id }) => this.heard.push(id),
      clock: () => this.time,
      gapMillisecondsMax: 1_000_000,
    });
  }

  begin(own: boolean): void {
    const seq = this.writes.length + 1;
    this.writes.push({ seq, xid: BigInt(100 + seq), own, state: 'open', told: false });
  }

  /** Changes one of the writes in the state `from`. */
  move(at: number, from: Write['state'], to: Write['state']): void {
    const found = this.writes.filter(({ state }) => state === from);
    const write = found[at % found.length];
    if (write !== undefined) write.state = to;
  }

  end(at: number, state: 'committed' | 'aborted'): void {
    this.move(at, 'open', state);
  }

  /** The answer to an own write arrives, some time after its commit. */
  tell(at: number): void {
    const untold = this.writes.filter(
      ({ own, state, told }) => own && !told && !['open', 'aborted'].includes(state),
    );
    const write = untold[at % untold.length];
    if (write === undefined) return;
    write.told = true;
    this.order.stored({ seq: write.seq, timeline: 1, comment: toComment(write.seq) });
  }

  snapshot(): void {
    const { cursor, ownMax } = this.order;
    const seen = this.writes.filter((w) => w.state === 'committed' && w.seq > cursor);
    const next = BigInt(101 + this.writes.length);
    const open = this.writes.filter(({ state }) => state === 'open').map(({ xid }) => xid);
    this.#poll = {
      comments: seen.slice(0, limit).map(({ seq }) => ({ seq, comment: toComment(seq) })),
      isWhole: seen.length < limit,
      ownMax,
      oldest: open[0] ?? next,
      next,
    };
  }

  take(): void {
    if (this.#poll !== undefined) this.order.take(this.#poll);
    this.#poll = undefined;
  }

  poll(times = 1): void {
    for (let polls = 0; polls < times; polls += 1) {
      this.snapshot();
      this.take();
    }
  }

  numbers(isOne: (seq: string, state: Write['state']) => boolean): readonly string[] {
    return this.writes
      .filter(({ seq, state }) => isOne(String(seq), state))
      .map(({ seq }) => String(seq));
  }
}

type Step = (model: Model) => void;
const pick = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.boolean().map((own) => (model: Model) => model.begin(own)),
  pick.map((n) => (model: Model) => model.end(n, 'committed')),
  pick.map((n) => (model: Model) => model.end(n, 'committed')),
  pick.map((n) => (model: Model) => model.end(n, 'aborted')),
  pick.map((n) => (model: Model) => model.tell(n)),
  pick.map((n) => (model: Model) => model.move(n, 'committed', 'removed')),
  fc.constant((model: Model) => model.snapshot()),
  fc.constant((model: Model) => model.take()),
);

describe('the order of comments', () => {
  it('is that of their numbers, without loss, whatever becomes visible when', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const model = new Model();
        for (const apply of steps) apply(model);
        // What is still open ends, and the node goes on polling.
        while (model.writes.some(({ state }) => state === 'open')) model.end(0, 'committed');
        model.poll(2 * model.writes.length + 2);
        // Each once, in order; one that was removed may have been heard before that.
        const inOrder = model.numbers((n) => model.heard.includes(n));
        assert.deepEqual(model.heard, inOrder);
        const there = model.numbers((_n, state) => state === 'committed');
        const heardThere = model.heard.filter((n) => there.includes(n));
        assert.deepEqual(heardThere, there);
      }),
      { numRuns: cases(2_000) },
    );
  });

  it('needs no poll for own comments that follow one another', () => {
    const model = new Model();
    for (let writes = 0; writes < 3; writes += 1) {
      model.begin(true);
      model.end(0, 'committed');
      model.tell(0);
    }
    assert.deepEqual(model.heard, ['1', '2', '3']);
  });

  it('delivers an own comment that was removed before the first poll', () => {
    const model = new Model();
    model.begin(false);
    model.begin(true);
    model.order.stored({ seq: 2, timeline: 1, comment: toComment(2) });
    model.end(0, 'aborted');
    model.end(0, 'aborted'); // gone again: no poll will see it
    model.poll(2);
    assert.deepEqual(model.heard, ['2']);
  });

  it('waits at a gap while a transaction can fill it, but not without end', () => {
    const model = new Model();
    model.begin(false);
    model.begin(false);
    model.end(1, 'committed');
    for (const time of [7_000_000, 7_000_001, 8_000_000]) {
      model.time = time;
      model.poll();
      assert.deepEqual(model.heard, [], `${time}`);
    }
    model.time = 8_000_001;
    model.poll();
    assert.deepEqual(model.heard, ['2']);
  });

  it('leaves own comments of another timeline to the polls', () => {
    const model = new Model();
    const heard = (): readonly string[] => model.heard;
    // Of a new primary that this node has not polled: their numbers are not those it knows.
    model.order.stored({ seq: 1, timeline: 2, comment: toComment(1) });
    assert.deepEqual(heard(), []);
    model.order = model.orderFrom({ timeline: 2 });
    // The answer of the old primary comes late.
    model.order.stored({ seq: 1, timeline: 1, comment: toComment(1) });
    assert.deepEqual([heard(), model.order.cursor, model.order.waiting], [[], 0, 0]);
    // The second answer is one to a comment that a poll was faster with.
    for (const seq of [1, 1]) model.order.stored({ seq, timeline: 2, comment: toComment(seq) });
    assert.deepEqual([heard(), model.order.waiting], [['1'], 0]);
  });

  it('leaves own comments to the polls where those that wait are long', () => {
    const { order, heard } = new Model();
    const stored = (seq: number): void =>
      order.stored({ seq, timeline: 1, comment: { ...toComment(seq), content: long } });
    const long = 'x'.repeat(1_048_576);
    for (let seq = 2; seq < 12; seq += 1) stored(seq);
    assert.equal(order.waiting, 4);
    stored(1);
    assert.deepEqual([heard, order.waiting], [[], 4]);
    const comments = [1, 2, 3, 4, 5, 6].map((seq) => ({ seq, comment: toComment(seq) }));
    order.take({ comments, isWhole: false, ownMax: order.ownMax, oldest: 1n, next: 1n });
    assert.deepEqual([heard.length, order.waiting], [6, 0]);
    for (let seq = 8; seq < 18; seq += 1) stored(seq);
    assert.equal(order.waiting, 4);
  });

  it('leaves out what was stored before it began', () => {
    const model = new Model([1, 3]);
    for (let writes = 0; writes < 4; writes += 1) model.begin(false);
    for (let writes = 0; writes < 4; writes += 1) model.end(0, 'committed');
    assert.deepEqual(model.order.skipped, [1, 3]);
    model.poll(2);
    assert.deepEqual([model.heard, model.order.skipped], [['2', '4'], []]);
  });

  it('goes back where the database has lost its last comments', () => {
    const model = new Model();
    model.order = model.orderFrom();
    model.begin(false);
    model.end(0, 'committed');
    model.poll();
    model.order = model.orderFrom();
    model.poll();
    assert.deepEqual(model.heard, ['1', '1']);
  });
});

it('own comments that wait take 4 MiB, with 400 bytes beside the text of each', () => {
  for (const [length, count] of [
    [0, 10_486],
    [9_600, 420],
  ] as const) {
    const { order } = new Model();
    // The first number is missing.
    for (let seq = 2; seq < 20_000; seq += 1) {
      order.stored({
        seq,
        timeline: 1,
        comment: { ...toComment(seq), content: 'x'.repeat(length) },
      });
    }
    assert.equal(order.waiting, count);
  }
});
