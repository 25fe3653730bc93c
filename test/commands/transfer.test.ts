/** `export` and `import`: a store comes back as it was, in whichever database (R50). */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isLong } from '../support/long.ts';
import { allOf } from '../support/lists.ts';
import { durableStores, openOn } from '../support/stores.ts';
import { answersOf, exportFrom, fill, importTo, newPlace } from '../support/transfer.ts';

for (const from of durableStores) {
  for (const to of durableStores.filter((other) => isLong || other !== from)) {
    describe(
      `a store ${from.name}, moved to one ${to.name}`,
      { skip: from.skip || to.skip },
      () => {
        it('has the same export, answers the same, and takes no record twice', async (t) => {
          const [old, moved] = [await newPlace(t, from), await newPlace(t, to)];
          await fill(t, old);
          const first = await exportFrom(old);
          assert.deepEqual([first.code, first.errors], [0, '']);
          const records = first.output.match(/^\{"kind":"(?!content|end)/gm)?.length ?? 0;
          const said = `Stored ${records} records; 0 were there already.\n`;
          assert.deepEqual(await importTo(moved, first.output), {
            code: 0,
            output: said,
            errors: '',
          });
          assert.equal((await exportFrom(moved)).output, first.output);

          const again = await importTo(moved, first.output);
          assert.equal(again.output, `Stored 0 records; ${records} were there already.\n`);
          assert.equal((await exportFrom(moved)).output, first.output);
          const [was, is] = [await answersOf(t, old), await answersOf(t, moved)];
          assert.deepEqual(
            is.filter((line) => !was.includes(line)),
            [],
          );
          assert.equal(is.length, was.length);

          // Comments that have waited: a page after one that was removed begins at its place.
          const stores = [await openOn(t, old.STORE_URL), await openOn(t, moved.STORE_URL)];
          const [all] = await Promise.all(stores.map(async ({ comments }) => allOf(comments.all)));
          const pages: unknown[][] = [];
          for (const { comments } of stores) {
            const read: unknown[] = [];
            for (const { id, postId } of all?.slice(0, 20) ?? []) {
              assert.equal(await comments.remove([id]), true);
              read.push((await comments.ofPost(postId).read({ after: id })).records);
              read.push((await comments.all.read({ after: id, limit: 3 })).records);
            }
            pages.push(read);
          }
          assert.deepEqual(pages[1], pages[0]);
        });
      },
    );
  }
}
