import assert from 'node:assert/strict';
import test from 'node:test';
import { alone, createGather } from '../../dist/store/postgres/gather.js';
import { gate } from '../support/http-kit.js';
import { times } from '../support/lists.js';
import { until } from '../support/until.js';

/** Statements that wait for their gates; a long item has to be asked for alone. */
function createSlow() {
  const gates = { together: gate(), alone: gate() };
  const running = { together: 0, alone: 0, max: 0 };
  const wait = async <T>(kind: 'together' | 'alone', result: T): Promise<T> => {
    running[kind] += 1;
    running.max = Math.max(running.max, running.together + running.alone);
    await gates[kind].opened;
    running[kind] -= 1;
    return result;
  };
  const ask = createGather<string, string>({
    weightMax: 2,
    weightOf: () => 1,
    together: async (items) =>
      wait(
        'together',
        items.map((item) => (item.startsWith('long') ? alone : item)),
      ),
    alone: async (item) => wait('alone', item),
  });
  return { gates, running, ask };
}

test('items that are asked for alone hold up no others', async () => {
  const { gates, running, ask } = createSlow();
  gates.together.open();
  const long = times(8).map(async (at) => ask(`long ${at}`));
  await until(() => running.alone === 2);
  assert.deepEqual(
    await Promise.all(times(8).map(async (at) => ask(`short ${at}`))).then((found) => found.length),
    8,
  );
  assert.deepEqual(running, { together: 0, alone: 2, max: 3 });
  gates.alone.open();
  assert.deepEqual(
    await Promise.all(long),
    times(8).map((at) => `long ${at}`),
  );
});

test('items that are asked for together hold up none that is alone', async () => {
  const { gates, running, ask } = createSlow();
  gates.together.open();
  const long = ask('long');
  await until(() => running.alone === 1);
  gates.together = gate();
  const short = times(8).map(async (at) => ask(`short ${at}`));
  await until(() => running.together === 2);
  gates.alone.open();
  assert.equal(await long, 'long');
  assert.equal(running.max, 3);
  gates.together.open();
  assert.deepEqual(
    await Promise.all(short),
    times(8).map((at) => `short ${at}`),
  );
});
