/** R40 behind a proxy that loses one response of five: what each client intends is done once. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isLong } from './support/long.ts';
import { checkOnce, prepare, sendIntents } from './support/intents.ts';
import { startLossyProxy } from './support/lossy-proxy.ts';
import { startServer } from './support/server.ts';
import { stores } from './support/stores.ts';
import { createDirectory } from './support/uploads.ts';

const count = isLong ? 500 : 200;

describe(`${count} intents through a proxy that loses`, () => {
  for (const { name, skip, newUrl } of stores) {
    it(`are as many records and answers ${name}`, { skip }, async (t) => {
      const env = { STORE_URL: await newUrl(t), UPLOAD_DIR: await createDirectory(t) };
      const { url, port } = await startServer(t, { env });
      const proxy = await startLossyProxy(t, () => [port], 5);
      const places = await prepare(url);
      const answers = await sendIntents(proxy.port, places, count).answers;
      await checkOnce(url, places, answers);
      // Those whose response was lost were done before they were answered.
      const replayed = answers.filter(({ isReplayed }) => isReplayed).length;
      assert.ok(replayed > 0 && proxy.counts.unanswered > 0, JSON.stringify(proxy.counts));
    });
  }
});
