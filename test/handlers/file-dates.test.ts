import assert from 'node:assert/strict';
import { test } from 'node:test';
import { file, form, postForm } from '../support/files.ts';
import { startServer } from '../support/server.ts';

/** The two older forms of a date (RFC 9110 §5.6.7): both are in GMT. */
function older(date: string): readonly string[] {
  const [, day = '', at = '', month = '', year = '', time = ''] =
    /^(\w+), (\d\d) (\w+) (\d+) (\S+) GMT$/.exec(date) ?? [];
  const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
  const long = days.find((name) => name.startsWith(day));
  return [
    `${long}, ${at}-${month}-${year.slice(2)} ${time} GMT`,
    `${day} ${month} ${at.replace(/^0/, ' ')} ${time} ${year}`,
  ];
}

/** What clients call GMT: Go and OkHttp, Python and uv. */
const renamed = (date: string): readonly string[] =>
  ['UTC', '+0000', '-0000'].map((zone) => date.replace('GMT', zone));

test('a file has its date, which counts where no tag is sent', async (t) => {
  const server = await startServer(t);
  await postForm(server, 'list', form({ a: file('text', 'a.txt') }));
  const path = '/files/a.txt';
  const first = await server.fetch(path);
  const [date = '', etag = ''] = ['last-modified', 'etag'].map(
    (name) => first.headers.get(name) ?? '',
  );
  assert.ok(Math.abs(Date.parse(date) - Date.now()) < 600_000, date);
  const [before = '', after = ''] = [-1_000, 1_000].map((by) =>
    new Date(Date.parse(date) + by).toUTCString(),
  );
  for (const [headers, status] of [
    [{ 'If-Modified-Since': date }, 304],
    [{ 'If-Modified-Since': after }, 304],
    [{ 'If-Modified-Since': before }, 200],
    ...['yesterday', '9999', ''].map((text) => [{ 'If-Modified-Since': text }, 200] as const),
    ...older(after).map((text) => [{ 'If-Modified-Since': text }, 304] as const),
    ...older(before).map((text) => [{ 'If-Modified-Since': text }, 200] as const),
    ...renamed(date).map((text) => [{ 'If-Modified-Since': text }, 304] as const),
    ...renamed(before).map((text) => [{ 'If-Modified-Since': text }, 200] as const),
    [{ 'If-Modified-Since': date.replace('GMT', 'PST') }, 200],
    [{ 'If-Modified-Since': date.replace('GMT', '+0100') }, 200],
    [{ 'If-Modified-Since': date, 'If-None-Match': '"x"' }, 200],
    [{ 'If-Unmodified-Since': date }, 200],
    [{ 'If-Unmodified-Since': before }, 412],
    [{ 'If-Unmodified-Since': before, 'If-Match': etag }, 200],
    [{ 'If-Range': date, Range: 'bytes=0-1' }, 206],
    [{ 'If-Range': before, Range: 'bytes=0-1' }, 200],
  ] as const) {
    const response = await server.fetch(path, { headers });
    assert.equal(response.status, status, JSON.stringify(headers));
    await response.arrayBuffer();
  }
});

test('a file is replaced or removed only if it was not changed since a date', async (t) => {
  const server = await startServer(t);
  const upload = async (headers: Readonly<Record<string, string>>, name = 'a.txt') => {
    const body = form({ part: file('text', name) });
    return (await server.fetch('/api/multiparts/simple', { method: 'POST', body, headers })).status;
  };
  const remove = async (headers: Readonly<Record<string, string>>) =>
    (await server.fetch('/api/multiparts/a.txt', { method: 'DELETE', headers })).status;
  assert.equal(await upload({}), 200);
  const { headers } = await server.fetch('/files/a.txt', { method: 'HEAD' });
  const tag = headers.get('etag') ?? '';
  const since = 'If-Unmodified-Since';
  const [before, after] = [-60_000, 60_000].map((by) => new Date(Date.now() + by).toUTCString());
  for (const change of [upload, remove]) {
    assert.equal(await change({ [since]: before ?? '' }), 412);
    for (const text of [...older(before ?? ''), ...renamed(before ?? '')])
      assert.equal(await change({ [since]: text }), 412, text);
    // Tags count where both are sent (RFC 9110 §13.2.2).
    assert.equal(await change({ [since]: after ?? '', 'If-Match': '"x"' }), 412);
  }
  assert.equal((await server.fetch('/files/a.txt')).headers.get('etag'), tag);
  assert.equal(await upload({ [since]: before ?? '', 'If-Match': tag }), 200);
  assert.equal(await upload({ [since]: 'yesterday' }), 200);
  assert.equal(await upload({ [since]: before ?? '' }, 'new.txt'), 200);
  assert.equal(await remove({ [since]: after ?? '' }), 204);
});
