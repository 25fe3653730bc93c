/** Stored files as a list, and as browsers show them (R45). */

import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { file, form, postForm, refusal, stored } from '../support/files.ts';
import { pluck, readPages, times } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { onPostgres, stores } from '../support/stores.ts';
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
const namesOf = async (server: TestServer, path: string): Promise<string> =>
  pluck(await server.read<Entry[]>(path), 'name').join(' ');

async function start(t: TestContext, url: string, folder?: string): Promise<TestServer> {
  const UPLOAD_DIR = folder ?? (await createDirectory(t));
  return startServer(t, { env: { STORE_URL: url, UPLOAD_DIR, DEMO_DATA: 'false' } });
}

for (const { name: where, skip, newUrl } of stores) {
  suite(`GET /files ${where}`, { skip }, () => {
    test('lists name, size, type and tag, in the order in which files came', async (t) => {
      const server = await start(t, await newUrl(t));
      assert.deepEqual(await server.read('/files'), []);
      await put(server, 'b.PNG', 'a.html', 'ä "x".txt');
      await put(server, 'b.PNG');
      const found = await server.read<Entry[]>('/files');
      assert.deepEqual(
        found.map(({ etag: _etag, ...rest }) => Object.values(rest)),
        [
          ['b.PNG', 16, 'image/png'],
          ['a.html', 17, 'application/octet-stream'],
          ['ä "x".txt', 21, 'text/plain'],
        ],
      );
      for (const { name, etag } of found) {
        const shown = await server.fetch(`/files/${encodeURIComponent(name)}`);
        const told = [shown.headers.get('etag'), await shown.text()];
        assert.deepEqual(told, [etag, `content of ${name}`]);
      }
      assert.equal(new Set(pluck(found, 'etag')).size, 3);
    });

    test('pages lead to the end, also while files are removed and replaced', async (t) => {
      const server = await start(t, await newUrl(t));
      await put(server, 'a', 'b', 'c&=ä', 'd', 'e');
      for (const [query, expected] of [
        ['', ['a b c&=ä d e']],
        ['?limit=5', ['a b c&=ä d e']],
        ['?limit=2', ['a b', 'c&=ä d', 'e']],
      ] as const) {
        const pages = (await readPages(server, `/files${query}`)) as unknown as Entry[][];
        const names = pages.map((page) => pluck(page, 'name').join(' '));
        assert.deepEqual(names, expected);
      }
      // The last file of a page goes, and one before it is replaced: the next page is the same.
      const { headers } = await server.fetch('/files?limit=2');
      await server.fetch('/api/multiparts/b', { method: 'DELETE' });
      await put(server, 'a', 'f', 'b');
      const [, next = ''] = /^<([^>]+)>/.exec(headers.get('link') ?? '') ?? [];
      for (const [path, expected] of [
        [next, 'c&=ä d'],
        ['/files?', 'a c&=ä d e f b'],
        ['/files?after=a', 'c&=ä d e f b'],
        [`/files?after=${encodeURIComponent('c&=ä')}`, 'd e f b'],
        ['/files?after=b', ''],
      ] as const) {
        assert.equal(await namesOf(server, path), expected, path);
        if (path === next) continue;
        assert.equal(await namesOf(server, `${path}&limit=1`), expected.split(' ')[0], path);
      }
    });
  });
}

suite('If-None-Match: * on an upload', () => {
  const send = async (server: TestServer, parts: Readonly<Record<string, File>>, path = 'list') => {
    const init = { method: 'POST', body: form(parts), headers: { 'If-None-Match': '*' } };
    return server.fetch(`/api/multiparts/${path}`, init);
  };

  test('stores nothing where one of the names is stored', async (t) => {
    const server = await start(t, 'memory:');
    const status = async (names: string, path?: string): Promise<number> => {
      const parts = names.split(' ').map((name) => [path ? 'part' : name, file('new', name)]);
      const response = await send(server, Object.fromEntries(parts), path);
      if (response.status === 200) return 200;
      assert.deepEqual(await refusal(response), [412, 'precondition_failed'], names);
      return 412;
    };
    assert.equal(await status('a.txt b.txt'), 200);
    const before = await server.read('/files');
    for (const path of ['simple', undefined]) assert.equal(await status('b.txt', path), 412);
    assert.equal(await status('c.txt a.txt d.txt'), 412);
    assert.deepEqual(await server.read('/files'), before);
    assert.equal(await status('c.txt', 'simple'), 200);
    await put(server, 'a.txt');
    assert.equal(await namesOf(server, '/files'), 'a.txt b.txt c.txt');
    await server.fetch('/api/multiparts/a.txt', { method: 'DELETE' });
    assert.equal(await status('a.txt'), 200);
  });

  test(
    'lets one of many store a new name, on whatever node',
    { skip: onPostgres.skip },
    async (t) => {
      const [url, folder] = [await onPostgres.newUrl(t), await createDirectory(t)];
      const nodes = [await start(t, url, folder), await start(t, url, folder)] as const;
      const asked = times(12).map((at) => {
        const parts = { a: file(`${at}`, 'a'), b: file(`${at}`, `own ${at}`) };
        return send(nodes[at % 2 === 0 ? 0 : 1], parts);
      });
      const statuses = pluck(await Promise.all(asked), 'status');
      const winner = statuses.indexOf(200);
      assert.equal(statuses.filter((status) => status === 412).length, 11);
      const rows = (await stored(nodes[0])).map(([name, , , content]) => `${name}: ${content}`);
      assert.deepEqual(rows.toSorted(), [`a: ${winner}`, `own ${winner}: ${winner}`]);
    },
  );
});

suite('GET /files', () => {
  test('refuses bad parameters by their names, and a file that is not stored', async (t) => {
    const server = await startServer(t);
    await put(server, 'a');
    const limits = ['limit=0', 'limit=1001', 'limit=1&limit=1'];
    const long = `after=/${'9'.repeat(16)}`;
    const afters = ['after=b', 'after=a&after=a', 'after=/', 'after=/-1', long];
    for (const query of [...limits, ...afters]) {
      const problem = await server.read<Record<string, unknown>>(`/files?${query}`);
      const { status, code, parameter } = problem;
      const name = query.slice(0, 5);
      assert.deepEqual([status, code, parameter], [400, 'invalid_parameter', name], query);
    }
    assert.deepEqual(await server.read(`/files?${long.slice(0, -1)}`), []);
    assert.equal(await namesOf(server, '/files?after=/0&limit=1000&other=1'), 'a');
  });

  test('a list of more files than one page of the store has all of them', async (t) => {
    const server = await startServer(t);
    const names = times(1_203).map((at) => `${at}.txt`);
    for (let at = 0; at < names.length; at += 100) await put(server, ...names.slice(at, at + 100));
    assert.equal(await namesOf(server, '/files'), names.join(' '));
    assert.equal(await namesOf(server, '/files?limit=1000'), names.slice(0, 1_000).join(' '));
    assert.equal(await namesOf(server, '/files?after=101.txt'), names.slice(102).join(' '));
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
      const { headers } = await server.fetch(`/files/${encodeURIComponent(name)}`);
      const type = expected.get(name);
      const kind = type === undefined ? 'attachment' : 'inline';
      const disposition = headers.get('content-disposition') ?? '';
      assert.ok(disposition.startsWith(`${kind}; filename="${name}"; filename*=UTF-8''`), name);
      for (const [header, value] of [
        ['content-type', type ?? 'application/octet-stream'],
        ['content-security-policy', /^(?:audio|video)/.test(type ?? '') ? media : policy],
        ['x-content-type-options', 'nosniff'],
        ['cross-origin-resource-policy', 'cross-origin'],
        ['cache-control', 'no-cache'],
      ] as const) {
        assert.equal(headers.get(header), value, name);
      }
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
      const response = await server.fetch(path, { method, headers });
      assert.deepEqual([response.status, await response.text()], [status, content]);
      assert.equal(response.headers.get('content-security-policy'), policy);
    }
    for (const name of ['b.png', 'A.png', '..%2Fa.png', '%00']) {
      const refused = await refusal(await server.fetch(`/files/${name}`));
      assert.deepEqual(refused, [404, 'not_found'], name);
    }
    const removal = await server.fetch(path, { method: 'DELETE' });
    assert.deepEqual([removal.status, removal.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
  });
});
