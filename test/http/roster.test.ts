import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { type Member, Roster } from '../../dist/http/roster.js';

test('a roster has whoever came and did not go, once, as a set would', () => {
  const step = fc.record({ who: fc.nat({ max: 9 }), comes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const people: Member[] = Array.from({ length: 10 }, () => ({ place: -1 }));
      const roster = new Roster<Member>();
      const expected = new Set<Member>();
      for (const { who, comes } of steps) {
        const member = people[who];
        assert.ok(member);
        if (comes) {
          roster.add(member);
          expected.add(member);
        } else {
          roster.delete(member);
          expected.delete(member);
        }
        assert.equal(roster.size, expected.size);
        assert.deepEqual(new Set(roster), expected);
      }
    }),
  );
});
