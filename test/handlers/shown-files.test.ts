/** Stored files as a list, and as browsers show them (R45). */

import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { file, form, postForm, refusal, stored } from '../support/files.ts';
import { pluck, readPages, times } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stores } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';

interface Entry {
  readonly name: string;
  readonly size: number;
  readonly type: string;
  readonly etag: string;
}

const put = async (server: TestServer, ...names: readonly string[]): Promise<void> => {
  const parts = names.map((name) => [name, file(`content of ${name}`, name)]);
  assert.equal((await postForm(server, 'list', form(Object.fromEntries(parts)))).status, 200);
};
const list = async (server: TestServer, query = ''): Promise<readonly Entry[]> => {
  const response = await server.fetch(`/files${query}`);
  assert.equal(response.status, 200);
  return (await response.json()) as Entry[];
};
const nextOf = ({ headers }: Response): string | undefined =>
  /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
const namesOf = async (response: Response): Promise<string> =>
  pluck((await response.json()) as Entry[], 'name').join(' ');

/** As many nodes as the store can have, with one folder. */
async function startNodes(t: TestContext, url: string, count = 1): Promise<readonly TestServer[]> {
  const env = { STORE_URL: url, UPLOAD_DIR: await createDirectory(t), DEMO_DATA: 'false' };
  const nodes: TestServer[] = [];
  const isShared = url.startsWith('postgres');
  for (const _ of times(isShared ? count : 1)) nodes.push(await startServer(t, { env }));
  return nodes;
}

for (const { name: where, skip, newUrl } of stores) {
  suite(`GET /files ${where}`, { skip }, () => {
    test('lists name, size, type and tag, in the order in which files came', async (t) => {
      const [server = assert.fail()] = await startNodes(t, await newUrl(t));
      assert.deepEqual(await list(server), []);
      await put(server, 'b.PNG', 'a.html', 'ä "x".txt');
      await put(server, 'b.PNG');
      const found = await list(server);
      const facts = found.map(({ name, size, type }) => [name, size, type]);
      assert.deepEqual(facts, [
        ['b.PNG', 16, 'image/png'],
        ['a.html', 17, 'application/octet-stream'],
        ['ä "x".txt', 21, 'text/plain'],
      ]);
      for (const { name, etag, ...rest } of found) {
        assert.deepEqual(Object.keys(rest), ['size', 'type'], name);
        const shown = await server.fetch(`/files/${encodeURIComponent(name)}`);
        assert.equal(shown.headers.get('etag'), etag, name);
        assert.equal(await shown.text(), `content of ${name}`, name);
      }
      assert.equal(new Set(pluck(found, 'etag')).size, 3);
    });

    test('pages lead to the end, also while files are removed and replaced', async (t) => {
      const [server = assert.fail()] = await startNodes(t, await newUrl(t));
      await put(server, 'a', 'b', 'c&=ä', 'd', 'e');
      const whole = await server.fetch('/files');
      assert.equal(nextOf(whole), undefined);
      assert.equal(await namesOf(whole), 'a b c&=ä d e');
      const pages = (await readPages(server, '/files?limit=2')) as unknown as Entry[][];
      const names = pages.map((page) => pluck(page, 'name').join(' '));
      assert.deepEqual(names, ['a b', 'c&=ä d', 'e']);
      assert.equal(nextOf(await server.fetch('/files?limit=5')), undefined);
      // The last file of a page goes, and one before it is replaced: the next page is the same.
      const first = await server.fetch('/files?limit=2');
      await server.fetch('/api/multiparts/b', { method: 'DELETE' });
      await put(server, 'a', 'f', 'b');
      assert.equal(await namesOf(await server.fetch(nextOf(first) ?? '')), 'c&=ä d');
      assert.equal(await namesOf(await server.fetch('/files')), 'a c&=ä d e f b');
      for (const [after, rest] of [
        ['a', 'c&=ä d e f b'],
        [encodeURIComponent('c&=ä'), 'd e f b'],
        ['b', ''],
      ] as const) {
        await t.test(after, async () => {
          const response = await server.fetch(`/files?after=${after}`);
          assert.equal(await namesOf(response), rest, after);
          const page = await server.fetch(`/files?after=${after}&limit=1`);
          assert.equal(await namesOf(page), rest.split(' ')[0], after);
        });
      }
    });

    test('If-None-Match: * stores nothing where one of the names is stored', async (t) => {
      const nodes = await startNodes(t, await newUrl(t), 2);
      const [server = assert.fail(), other = server] = nodes;
      const send = (
        names: readonly string[],
        path = 'list',
        content = 'new',
      ): Promise<Response> => {
        const parts = names.map((name) => [path === 'simple' ? 'part' : name, file(content, name)]);
        const headers = { 'If-None-Match': '*' };
        const body = form(Object.fromEntries(parts));
        return other.fetch(`/api/multiparts/${path}`, { method: 'POST', body, headers });
      };
      assert.equal((await send(['a.txt', 'b.txt'])).status, 200);
      const before = await list(server);
      for (const path of ['simple', 'list']) {
        const refused = await refusal(await send(['b.txt'], path));
        assert.deepEqual(refused, [412, 'precondition_failed'], path);
      }
      const several = await send(['c.txt', 'a.txt', 'd.txt']);
      assert.deepEqual(await refusal(several), [412, 'precondition_failed']);
      assert.deepEqual(await list(server), before);
      assert.equal((await send(['c.txt'], 'simple')).status, 200);
      await put(server, 'a.txt');
      assert.equal((await list(server)).length, 3);
      await server.fetch('/api/multiparts/a.txt', { method: 'DELETE' });
      assert.equal((await send(['a.txt'])).status, 200);
    });

    test('of many that store one new name at once, one does', async (t) => {
      const nodes = await startNodes(t, await newUrl(t), 2);
      const [server = assert.fail()] = nodes;
      for (const round of times(3)) {
        const statuses = await Promise.all(
          times(12).map(async (at) => {
            const names = { a: file(`${at}`, `a${round}`), b: file(`${at}`, `own ${round} ${at}`) };
            const headers = { 'If-None-Match': '*' };
            const init = { method: 'POST', body: form(names), headers };
            const node = nodes[at % nodes.length] ?? server;
            return (await node.fetch('/api/multiparts/list', init)).status;
          }),
        );
        assert.deepEqual(
          statuses.filter((status) => status !== 412),
          [200],
          `round ${round}`,
        );
        const winner = statuses.indexOf(200);
        const rows = (await stored(server)).filter(([name]) => name.includes(`${round}`));
        const own = rows.filter(([name]) => name.startsWith(`own ${round} `));
        assert.deepEqual(pluck(own, 0), [`own ${round} ${winner}`], `round ${round}`);
        const common = rows.find(([name]) => name === `a${round}`);
        assert.equal(common?.[3], `${winner}`, `round ${round}`);
      }
    });
  });
}

suite('GET /files', () => {
  test('has a tag and conditions, as other lists have', async (t) => {
    const server = await startServer(t);
    await put(server, 'a');
    const response = await server.fetch('/files');
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
    const etag = response.headers.get('etag') ?? '';
    const again = await server.fetch('/files', { headers: { 'If-None-Match': etag } });
    assert.equal(again.status, 304);
    await put(server, 'a');
    const changed = await server.fetch('/files', { headers: { 'If-None-Match': etag } });
    assert.equal(changed.status, 200);
    assert.equal((await server.fetch('/files', { method: 'HEAD' })).status, 200);
    const other = await server.fetch('/files', { headers: { Accept: 'text/html' } });
    assert.deepEqual(await refusal(other), [406, 'not_acceptable']);
    assert.equal((await server.fetch('/files/')).status, 404);
  });

  test('refuses bad parameters by their names, and a file that is not stored', async (t) => {
    const server = await startServer(t);
    await put(server, 'a');
    for (const [query, parameter] of [
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['limit=1&limit=1', 'limit'],
      ['after=b', 'after'],
      ['after=a&after=a', 'after'],
      ['after=/', 'after'],
      ['after=/-1', 'after'],
      [`after=/${'9'.repeat(16)}`, 'after'],
    ] as const) {
      await t.test(query, async () => {
        const response = await server.fetch(`/files?${query}`);
        const problem = (await response.json()) as Record<string, unknown>;
        const { code, parameter: named } = problem;
        assert.deepEqual([response.status, code, named], [400, 'invalid_parameter', parameter]);
      });
    }
    assert.deepEqual(await list(server, `?after=/${'9'.repeat(15)}`), []);
    assert.equal((await list(server, '?after=/0&limit=1000&other=1')).length, 1);
  });

  test('a list of more files than one page of the store has all of them', async (t) => {
    const server = await startServer(t);
    const names = times(1_203).map((at) => `file ${at}`);
    for (let at = 0; at < names.length; at += 100) await put(server, ...names.slice(at, at + 100));
    assert.deepEqual(pluck(await list(server), 'name'), names);
    assert.deepEqual(pluck(await list(server, '?limit=1000'), 'name'), names.slice(0, 1_000));
    assert.deepEqual(pluck(await list(server, '?after=file%20101'), 'name'), names.slice(102));
  });
});

suite('GET /files/{name}', () => {
  const policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  const media =
    "sandbox allow-same-origin; default-src 'none'; media-src 'self'; style-src 'unsafe-inline'";

  test('shows safe types by the extension, and makes a download of all others', async (t) => {
    const server = await startServer(t);
    const shown = {
      'png jpg jpeg gif webp avif ico bmp svg jfif heic heif apng':
        'image/png image/jpeg image/jpeg image/gif image/webp image/avif image/x-icon image/bmp image/svg+xml image/jpeg image/heic image/heif image/apng',
      'mp3 ogg oga wav flac m4a': 'audio/mpeg audio/ogg audio/ogg audio/wav audio/flac audio/mp4',
      'jpe pjp jxl tif tiff vtt': 'image/jpeg image/jpeg image/jxl image/tiff image/tiff text/vtt',
      'm4b mka opus aac weba': 'audio/mp4 audio/x-matroska audio/ogg audio/aac audio/webm',
      'm4v mkv mp4 webm 3g2': 'video/mp4 video/x-matroska video/mp4 video/webm video/3gpp2',
      'ogv mov 3gp aif pdf': 'video/ogg video/quicktime video/3gpp audio/aiff application/pdf',
    };
    const texts = ['a.b.TxT', 'x.text', 'x.md', 'x.log', 'x.csv'];
    const expected = new Map(texts.map((one) => [one, 'text/plain; charset=utf-8']));
    for (const [extensions, types] of Object.entries(shown)) {
      for (const [at, one] of extensions.split(' ').entries()) {
        expected.set(`a.${one}`, types.split(' ')[at] ?? '');
      }
    }
    const unknown = 'html htm xhtml xml xsl js mjs css json mhtml svgz swf wasm png. constructor';
    const others = [...unknown.split(' ').map((one) => `a.${one}`), 'png', 'svg', 'a', '.svg '];
    await put(server, ...expected.keys(), ...others);
    for (const name of [...expected.keys(), ...others]) {
      const response = await server.fetch(`/files/${encodeURIComponent(name)}`);
      assert.equal(await response.text(), `content of ${name}`, name);
      const { headers } = response;
      const type = expected.get(name);
      assert.equal(headers.get('content-type'), type ?? 'application/octet-stream', name);
      const kind = type === undefined ? 'attachment' : 'inline';
      const disposition = headers.get('content-disposition') ?? '';
      assert.ok(disposition.startsWith(`${kind}; filename="${name}"; filename*=UTF-8''`), name);
      const expectedPolicy = /^(?:audio|video)/.test(type ?? '') ? media : policy;
      assert.equal(headers.get('content-security-policy'), expectedPolicy, name);
      assert.equal(headers.get('x-content-type-options'), 'nosniff', name);
      assert.equal(headers.get('cross-origin-resource-policy'), 'cross-origin', name);
      assert.equal(headers.get('cache-control'), 'no-cache', name);
    }
  });

  test('HEAD, ranges and conditions are those of a single file', async (t) => {
    const server = await startServer(t);
    await put(server, 'simple', 'a.png');
    assert.equal((await server.fetch('/files/simple')).status, 200);
    const path = '/files/a.png';
    const etag = (await server.fetch(path)).headers.get('etag') ?? '';
    for (const [headers, status, method, content] of [
      [{}, 200, 'HEAD', ''],
      [{ Range: 'bytes=0-6' }, 206, 'GET', 'content'],
      // A browser replaces the headers that it keeps by these.
      [{ 'If-None-Match': etag }, 304, 'GET', ''],
    ] as const) {
      const response = await server.fetch(path, { method, headers: { ...headers } });
      assert.deepEqual([response.status, await response.text()], [status, content]);
      assert.equal(response.headers.get('content-security-policy'), policy);
    }
    for (const [headers, status] of [
      [{ Range: 'bytes=0-6', 'If-Range': '"other"' }, 200],
      [{ Range: 'bytes=16-' }, 416],
      [{ 'If-Match': '"other"' }, 412],
    ] as const) {
      assert.equal((await server.fetch(path, { headers: { ...headers } })).status, status);
    }
    for (const name of ['b.png', 'A.png', '..%2Fa.png', '%00']) {
      const refused = await refusal(await server.fetch(`/files/${name}`));
      assert.deepEqual(refused, [404, 'not_found'], name);
    }
    for (const method of ['PUT', 'DELETE', 'POST']) {
      const refused = await server.fetch(path, { method });
      assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
    }
  });
});
