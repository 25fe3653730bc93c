/** Many changes of one article at once, on several nodes. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changing, valueOf } from '../support/article-texts.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { database } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';

describe('one article on several nodes', { skip, concurrency: true }, () => {
  it('can be changed from far away while a near one changes it all the time', async (context) => {
    const url = await database.createDatabase();
    const proxy = await startPostgresProxy(context, url, { delayMilliseconds: 5 });
    const [near, far] = [await openOn(context, url), await openOn(context, proxy.url)];
    const rounds: number[] = [];
    let over = false;
    const changeFar = async (): Promise<void> => {
      for (let count = 0; count < 6; count += 1) {
        let round = 0;
        await far.articles.change(1, (article) => {
          round += 1;
          return changing({ [`far ${count}`]: true })(article);
        });
        rounds.push(round);
      }
      over = true;
    };
    const changeNear = async (): Promise<number> => {
      for (let count = 0; ; count += 1) {
        if (over) return count;
        await near.articles.change(1, changing({ near: count }));
      }
    };
    const [, count] = await Promise.all([changeFar(), changeNear()]);
    context.diagnostic(`rounds far away: ${rounds.join(', ')}; ${count} changes near by`);
    // Whoever waits for the article is next: nothing is read and changed in vain.
    assert.equal(Math.max(...rounds), 1, rounds.join(', '));
    const article = valueOf(await near.articles.find(1));
    const kept = Object.keys(article ?? {}).filter((name) => name.startsWith('far'));
    assert.equal(kept.length, 6);
  });
});
