import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { readConfig } from '../../dist/config.js';
import { createFileHandlers } from '../../dist/handlers/files.js';
import type { Uploads } from '../../dist/store/files/uploads.js';
import { file, filesOnDisk, form, postForm, refusal, stored } from '../support/files.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { startServer } from '../support/server.ts';
import { times } from '../support/lists.ts';
import { startHttp } from '../support/http-kit.ts';
import { patient } from '../support/pace.ts';
import { keepOthersServed } from '../support/prober.ts';
import { ask, connectRaw, get } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

keepOthersServed();

const sized = (size: number, ...names: readonly string[]): FormData =>
  form(Object.fromEntries(names.map((name) => [name, file(Buffer.alloc(size), name)])));

suite('the limits of uploads', () => {
  test('hold for a body, the parts and the files kept', async (t) => {
    const server = await startServer(t, {
      // A busy machine may take long to write a thousand files.
      env: { UPLOAD_BYTES_MAX: '300000', IDLE_TIMEOUT_SECONDS: '600' },
      constants: { storedFilesMax: 2 },
    });
    const many = Object.fromEntries(times(1_001).map((at) => [`${at}`, 'x']));
    const tooLarge = [413, 'content_too_large'];
    for (const [body, expected] of [
      [sized(199_999, 'a'), 200],
      [sized(299_000, 'a'), 200],
      [sized(300_001, 'a'), tooLarge],
      [sized(160_000, 'a', 'b'), tooLarge],
      [form(many), tooLarge],
      [form({ b: '1', c: '2' }), [507, 'storage_full']],
      [form({ b: '1' }), 200],
    ] as const) {
      const response = await postForm(server, 'list', body);
      const found = response.status === 200 ? 200 : await refusal(response);
      assert.deepEqual(found, expected);
    }
  });

  test('hold for the bytes of all files: what is beyond is 507, and leaves nothing', async (t) => {
    const server = await startServer(t, { env: { STORED_BYTES_MAX: '300000' } });
    for (const [name, size, status] of [
      ['a', 200_000, 200],
      ['b', 100_001, 507],
      ['c', 100_001, 507],
      ['a', 300_000, 200],
      ['a', 1, 200],
      ['b', 299_999, 200],
    ] as const) {
      const response = await postForm(server, 'list', sized(size, name));
      assert.equal(response.status, status, `${name} ${size}`);
      if (status === 507) assert.deepEqual(await refusal(response), [507, 'storage_full'], name);
      assert.ok((await filesOnDisk(server)).length <= 3, name);
    }
  });
});

test('a download counts its list, and keeps its files, until its client is gone', async (t) => {
  const files = times(10_000).map((at) => {
    const storedName = `${at}`.padStart(2_000, '0'); // a head is longer than what is behind it
    return { storedName, temporaryName: '', size: 0, place: at, owner: null };
  });
  let [kept, opened] = [0, 0];
  async function* open(): AsyncGenerator<Buffer, void, undefined> {
    opened += 1;
    try {
      yield Buffer.alloc(0);
    } finally {
      opened -= 1;
    }
  }
  const uploads: Pick<Uploads, 'list' | 'read' | 'keepReplaced'> = {
    list: () => files,
    read: async () => {
      const content = open();
      await content.next();
      return content;
    },
    keepReplaced: () => {
      kept += 1;
      return () => (kept -= 1);
    },
  };
  const { download } = createFileHandlers({
    uploads: uploads as Uploads, // nothing else is asked for
    config: readConfig({}),
    log: () => undefined,
    createUuid: () => '',
    viewerOf: () => undefined,
    readerOf: () => undefined,
  });
  const { port, pool } = await startHttp(t, { routes: { 'GET /': download }, env: patient });
  const slow = await connectRaw(t, port);
  slow.send(get('/'));
  await once(slow.socket, 'data');
  slow.socket.pause();
  // A kibibyte for each file, and 256 KiB of content.
  assert.deepEqual([pool.bytes, kept], [10_000 * 1_024 + 262_144, 1]);
  slow.socket.destroy();
  await until('an empty pool', () => pool.bytes === 0 && kept === 0);
  assert.equal(opened, 0);
  pool.open().set(pool.bytesMax);
  assert.equal((await ask(t, port, get('/'))).status, 503);
  await until('the end of the download that was refused', () => kept === 0);
});

test('an upload that breaks off leaves nothing, wherever it is cut', async (t) => {
  const server = await startServer(t);
  const body = multipartBody([
    part('a', Buffer.alloc(1_500_000), { fileName: 'a' }),
    part('b', 'two', { fileName: 'b' }),
  ]);
  const type = `Content-Type: ${multipartType}`;
  for (const length of [0, 20, 100, 900_000, body.length - 60, body.length - 1]) {
    // A request's head and the first bytes of its body; then the connection is reset.
    const { socket, send } = await connectRaw(t, server.port);
    const head = ['POST /api/multiparts/list HTTP/1.1', 'Host: a', type];
    send([...head, `Content-Length: ${length + 10}`]);
    await new Promise((resolve) => socket.write(body.subarray(0, length), resolve));
    await server.fetch('/hello');
    socket.resetAndDestroy();
  }
  await until('no file', async () => (await filesOnDisk(server)).length === 0);
  assert.deepEqual(await stored(server), []);
  assert.ok(server.logged.every(({ level }) => level !== 'error'));
  assert.equal((await postForm(server, 'list', body)).status, 200);
});
