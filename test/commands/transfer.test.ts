/** `export` and `import`: a store comes back as it was, in whichever database (R50). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLong } from '../support/long.ts';
import { durableStores } from '../support/stores.ts';
import { answersOf, exportFrom, fill, importTo, newPlace } from '../support/transfer.ts';

for (const from of durableStores) {
  for (const to of durableStores.filter((other) => isLong || other !== from)) {
    const skip = from.skip || to.skip;
    test(`a store ${from.name}, moved to one ${to.name}, is the same`, { skip }, async (t) => {
      const [old, moved] = [await newPlace(t, from), await newPlace(t, to)];
      await fill(t, old);
      const first = await exportFrom(old);
      assert.deepEqual([first.code, first.errors], [0, '']);
      const records = first.output.match(/^\{"kind":"(?!content|end)/gm)?.length ?? 0;
      const said = `Stored ${records} records; 0 were there already.\n`;
      const imported = await importTo(moved, first.output);
      assert.deepEqual(imported, { code: 0, output: said, errors: '' });
      assert.equal((await exportFrom(moved)).output, first.output);

      const again = await importTo(moved, first.output);
      assert.equal(again.output, `Stored 0 records; ${records} were there already.\n`);
      assert.equal((await exportFrom(moved)).output, first.output);
      const [was, is] = [await answersOf(t, old), await answersOf(t, moved)];
      assert.deepEqual(is.toSorted(), was.toSorted());
    });
  }
}
