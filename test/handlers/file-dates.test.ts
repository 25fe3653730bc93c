import assert from 'node:assert/strict';
import { test } from 'node:test';
import { file, form, postForm } from '../support/files.ts';
import { type Sent, startServer } from '../support/server.ts';

/** A date in all forms: the two older ones (RFC 9110 §5.6.7), and what clients call GMT. */
function formsOf(date: string): readonly string[] {
  const [, day = '', at = '', month = '', year = '', time = ''] =
    /^(\w+), (\d\d) (\w+) (\d+) (\S+) GMT$/.exec(date) ?? [];
  const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
  const long = days.find((name) => name.startsWith(day));
  return [
    date,
    `${long}, ${at}-${month}-${year.slice(2)} ${time} GMT`,
    `${day} ${month} ${at.replace(/^0/, ' ')} ${time} ${year}`,
    // Go and OkHttp, Python and uv.
    ...['UTC', '+0000', '-0000'].map((zone) => date.replace('GMT', zone)),
  ];
}

test('a file has its date, which counts where no tag is sent', async (t) => {
  const server = await startServer(t);
  await postForm(server, 'list', form({ a: file('text', 'a.txt') }));
  const { headers: given } = await server.fetch('/files/a.txt');
  const [date, etag] = [given.get('last-modified') ?? '', given.get('etag') ?? ''];
  assert.ok(Math.abs(Date.parse(date) - Date.now()) < 600_000, date);
  const [before = '', after = ''] = [-1_000, 1_000].map((by) =>
    new Date(Date.parse(date) + by).toUTCString(),
  );
  const unread = [
    'yesterday',
    '9999',
    '',
    date.replace('GMT', 'PST'),
    date.replace('GMT', '+0100'),
  ];
  const since = 'If-Unmodified-Since';
  for (const [headers, status] of [
    ...[...formsOf(date), ...formsOf(after)].map(
      (text) => [{ 'If-Modified-Since': text }, 304] as const,
    ),
    ...[...formsOf(before), ...unread].map((text) => [{ 'If-Modified-Since': text }, 200] as const),
    [{ 'If-Modified-Since': date, 'If-None-Match': '"x"' }, 200],
    [{ [since]: date }, 200],
    [{ [since]: before }, 412],
    [{ [since]: before, 'If-Match': etag }, 200],
    [{ 'If-Range': date, Range: 'bytes=0-1' }, 206],
    [{ 'If-Range': before, Range: 'bytes=0-1' }, 200],
  ] as const) {
    const response = await server.fetch('/files/a.txt', { headers });
    assert.equal(response.status, status, JSON.stringify(headers));
    await response.arrayBuffer();
  }

  const upload = async (headers: Sent, name = 'a.txt') => {
    const body = form({ part: file('text', name) });
    return (await server.fetch('/api/multiparts/simple', { method: 'POST', body, headers })).status;
  };
  const remove = async (headers: Sent) =>
    (await server.fetch('/api/multiparts/a.txt', { method: 'DELETE', headers })).status;
  for (const change of [upload, remove]) {
    for (const text of formsOf(before)) assert.equal(await change({ [since]: text }), 412, text);
    // Tags count where both are sent (RFC 9110 §13.2.2).
    assert.equal(await change({ [since]: after, 'If-Match': '"x"' }), 412);
  }
  assert.equal((await server.fetch('/files/a.txt')).headers.get('etag'), etag);
  assert.equal(await upload({ [since]: before, 'If-Match': etag }), 200);
  assert.equal(await upload({ [since]: 'yesterday' }), 200);
  assert.equal(await upload({ [since]: before }, 'new.txt'), 200);
  assert.equal(await remove({ [since]: new Date(Date.now() + 60_000).toUTCString() }), 204);
});
