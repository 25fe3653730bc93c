import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonPatch, mergePatch, type Problem, saidBy, start } from '../support/articles.ts';
import { pluck, times } from '../support/lists.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

test('the two articles of the start are listed and found by id', async (t) => {
  const server = await start(t);
  const articles = (await server.get('/api/articles')) as { id: number }[];
  assert.deepEqual(pluck(articles, 'id'), [1, 2]);
  for (const [at, article] of articles.entries()) {
    const members = ['id', 'title', 'author', 'content', 'tags', 'publishedAt'];
    assert.deepEqual(Object.keys(article), members, `article ${at}`);
    assert.deepEqual(await server.get(`/api/articles/${article.id}`), article, `article ${at}`);
  }
});

test('an id that names no article is 404, for every method', async (t) => {
  const server = await start(t);
  const ids = '3 0 01 -1 +1 1.0 1e0 x %31%20 %D9%A1 9007199254740992'.split(' ');
  for (const path of ids.map((id) => `/api/articles/${id}`)) {
    assert.equal(await saidBy(await server.fetch(path)), '404 not_found', path);
    assert.equal(await saidBy(await server.patch(path, mergePatch, {})), '404 not_found', path);
    assert.equal(await saidBy(await server.patch(path, jsonPatch, [])), '404 not_found', path);
  }
});

test('a new article takes the next free id, and its link can be followed', async (t) => {
  const server = await start(t);
  const created = await server.send('POST', '/api/articles', { title: 'Third' });
  assert.equal(created.status, 201);
  assert.equal(created.headers.get('location'), '/articles/3');
  assert.equal(await created.text(), '');
  const redirect = await server.fetch('/articles/3', { redirect: 'manual' });
  assert.equal(redirect.status, 308);
  assert.equal(redirect.headers.get('location'), '/api/articles/3');
  assert.deepEqual(await server.get('/articles/3'), { title: 'Third', id: 3 });
  assert.equal(await saidBy(await server.fetch('/articles/03')), '404 not_found');
});

test('an article keeps its own names, whatever others are called (R10)', async (t) => {
  const server = await start(t);
  const post = async (names: string, value: number): Promise<string> => {
    const body = `{"title":"a","${names}":${value}}`;
    const headers = { 'Content-Type': 'application/json' };
    const created = await server.fetch('/api/articles', { method: 'POST', headers, body });
    return `/api${created.headers.get('location')}`;
  };
  const read = async (path: string): Promise<string> => (await server.fetch(path)).text();
  // Node 24 reads the names of the second as those of the first.
  for (const [before, name, written] of [
    ['\\\\', '"', '\\"'],
    ['\\\\u0', 'été', '\\u00e9t\\u00e9'],
  ] as const) {
    await t.test(before, async () => {
      const theirs = await post(before, 1);
      const mine = await post(written, 1);
      const text = JSON.stringify(name);
      assert.ok((await read(mine)).includes(`{"title":"a",${text}:1,`));
      await server.patch(theirs, mergePatch, `{"title":"b","${before}":2}`);
      await server.patch(mine, mergePatch, `{"title":"b","${written}":2}`);
      assert.ok((await read(mine)).includes(`{"title":"b",${text}:2,`));
      await server.patch(theirs, jsonPatch, [{ op: 'copy', from: '', path: '/of' }]);
      await server.patch(mine, jsonPatch, [{ op: 'copy', from: '', path: '/of' }]);
      assert.ok((await read(mine)).includes(`"of":{"title":"b",${text}:2,`));
    });
  }
});

test('an article with an id is stored under it, and the counter steps over it', async (t) => {
  const server = await start(t);
  const stored = { id: 3, title: 'Mine', extra: [1] };
  const created = await server.send('POST', '/api/articles', stored);
  assert.equal(created.headers.get('location'), '/articles/3');
  const next = await server.send('POST', '/api/articles', { title: 'Next' });
  assert.equal(next.headers.get('location'), '/articles/4');
  assert.deepEqual(await server.get('/api/articles/3'), stored);
  await server.send('POST', '/api/articles', { id: 3, title: 'Replaced' });
  assert.deepEqual(await server.get('/api/articles/3'), { id: 3, title: 'Replaced' });
  assert.equal(((await server.get('/api/articles')) as unknown[]).length, 4);
});

test('a body that is no article is refused and nothing is stored', async (t) => {
  const server = await start(t);
  const refused = await server.send('POST', '/api/articles', { title: 1, tags: ['a', 2] });
  assert.equal(refused.status, 422);
  const problem = (await refused.json()) as Problem;
  assert.deepEqual(pluck(problem.errors ?? [], 'pointer'), ['/title', '/tags/1']);
  assert.equal(((await server.get('/api/articles')) as unknown[]).length, 2);
});

test('a JSON Patch of the collection changes articles by their index', async (t) => {
  const server = await start(t);
  const patched = await server.patch('/api/articles', jsonPatch, [
    { op: 'replace', path: '/0/title', value: 'First' },
    { op: 'replace', path: '/1/content', value: 'New content' },
    { op: 'replace', path: '/1/author/familyName', value: 'Murray' },
    { op: 'add', path: '/1/tags/1', value: 'added' },
  ]);
  assert.equal(patched.status, 204);
  assert.equal(await patched.text(), '');
  const [first, second, ...more] = (await server.get('/api/articles')) as Record<string, unknown>[];
  assert.equal(more.length, 0);
  assert.equal(first?.['title'], 'First');
  assert.equal(second?.['content'], 'New content');
  assert.deepEqual(second?.['author'], { givenName: 'Grace', familyName: 'Murray' });
  assert.deepEqual(second?.['tags'], ['http', 'added', 'json']);
});

test('a patch of the collection is for all articles or none', async (t) => {
  const server = await start(t);
  const before = await server.get('/api/articles');
  const good = { op: 'replace', path: '/0/title', value: 'Lost' };
  const all = { op: 'replace', path: '' };
  const rows: readonly (readonly [unknown, string])[] = [
    [{ op: 'replace', path: '/2/title', value: 'x' }, '409 patch_not_applicable /1'],
    [{ op: 'test', path: '/1/title', value: 'x' }, '409 patch_not_applicable /1'],
    [{ op: 'replace', path: '/1/title', value: '' }, '422 invalid_body /1/title'],
    [{ op: 'replace', path: '/1/id', value: 9 }, '422 invalid_body /1/id'],
    [{ op: 'remove', path: '/1/id' }, '422 invalid_body /1/id'],
    [{ op: 'remove', path: '/1' }, '422 invalid_body '],
    [{ op: 'add', path: '/-', value: { id: 3, title: 'x' } }, '422 invalid_body '],
    [{ op: 'move', from: '/1', path: '/0' }, '422 invalid_body /0/id /1/id'],
    [{ op: 'copy', from: '/0', path: '/1' }, '422 invalid_body '],
    ...[[], null, {}].map((value) => [{ ...all, value }, '422 invalid_body '] as const),
    [{ ...all, value: [null, { id: 2, title: '' }] }, '422 invalid_body /0 /1/title'],
    [{ op: 'spam', path: '/0' }, '400 invalid_patch /1/op'],
  ];
  for (const [bad, expected] of rows) {
    await t.test(JSON.stringify([bad, expected]).slice(0, 100), async () => {
      const response = await server.patch('/api/articles', jsonPatch, [good, bad]);
      const { errors = [] } = (await response.clone().json()) as Problem;
      const said = [await saidBy(response), ...pluck(errors, 'pointer')].join(' ');
      assert.equal(said, expected);
      assert.deepEqual(await server.get('/api/articles'), before);
    });
  }
});

test('a JSON Patch of one article changes what it names', async (t) => {
  const server = await start(t);
  const before = (await server.get('/api/articles/1')) as object;
  const patched = await server.patch('/api/articles/1', `${jsonPatch}; charset=UTF-8`, [
    { op: 'test', path: '/id', value: 1 },
    { op: 'replace', path: '/title', value: 'Changed' },
    { op: 'add', path: '/more', value: { any: null } },
  ]);
  assert.equal(patched.status, 204);
  const changed = { ...before, title: 'Changed', more: { any: null } };
  assert.deepEqual(await server.get('/api/articles/1'), changed);
});

test('a patch of one article that does not hold leaves it as it was', async (t) => {
  const server = await start(t);
  const before = await server.get('/api/articles/1');
  const good = { op: 'replace', path: '/title', value: 'Lost' };
  const add = (path: string, value: unknown): object => ({ op: 'add', path, value });
  const deep = JSON.parse('['.repeat(60) + ']'.repeat(60)) as unknown;
  const rows: readonly (readonly [unknown, string])[] = [
    ['[', '400 invalid_json'],
    ['', '400 invalid_json'],
    ['[{"op":"add","path":"/a","value":{"__proto__":1}}]', '400 invalid_json'],
    [{}, '400 invalid_patch'],
    [[good, { op: 'add', path: '/__proto__/x', value: 1 }], '400 invalid_patch'],
    [[good, { op: 'remove', path: '/none' }], '409 patch_not_applicable'],
    [[good, { op: 'test', path: '/title', value: 'Other' }], '409 patch_not_applicable'],
    [[good, { op: 'replace', path: '/id', value: 2 }], '422 invalid_body'],
    [[{ op: 'remove', path: '' }], '422 invalid_body'],
    [[good, { op: 'replace', path: '/tags', value: [1] }], '422 invalid_body'],
    [[add('/x', [[[[]]]]), add('/x/0/0/0/0', deep)], '422 invalid_body'],
    [Array.from({ length: 1_001 }, () => good), '413 content_too_large'],
  ];
  for (const [body, expected] of rows) {
    await t.test(JSON.stringify([body, expected]).slice(0, 100), async () => {
      assert.equal(await saidBy(await server.patch('/api/articles/1', jsonPatch, body)), expected);
      assert.deepEqual(await server.get('/api/articles/1'), before);
    });
  }
});

test('a merge patch that leaves no valid article is refused', async (t) => {
  const server = await start(t);
  const before = await server.get('/api/articles/1');
  const rows: readonly (readonly [unknown, string])[] = [
    [{ title: null }, '422 invalid_body'],
    [{ id: null }, '422 invalid_body'],
    [{ id: 2 }, '422 invalid_body'],
    [{ id: '1' }, '422 invalid_body'],
    [{ publishedAt: 'never' }, '422 invalid_body'],
    [{ tags: { 0: 'x' } }, '422 invalid_body'],
    [[], '422 invalid_body'],
    ['null', '422 invalid_body'],
    ['{', '400 invalid_json'],
  ];
  for (const [body, expected] of rows) {
    await t.test(JSON.stringify([body, expected]).slice(0, 100), async () => {
      const refused = await server.patch('/api/articles/1', mergePatch, body);
      assert.equal(await saidBy(refused), expected);
    });
  }
  assert.deepEqual(await server.get('/api/articles/1'), before);
  const same = await server.patch('/api/articles/1', mergePatch, { id: 1 });
  assert.equal(same.status, 204);
});

test('another media type is refused with those that would do', async (t) => {
  const server = await start(t);
  const both = `${jsonPatch}, ${mergePatch}`;
  const rows: readonly (readonly [string, string, string])[] = [
    ['/api/articles/1', 'application/json', both],
    ['/api/articles/1', 'text/plain', both],
    ['/api/articles/1', `${jsonPatch}; charset=iso-8859-1`, both],
    ['/api/articles', mergePatch, jsonPatch],
    ['/api/articles', 'application/json', jsonPatch],
  ];
  for (const [path, type, acceptPatch] of rows) {
    await t.test(`${path} ${type}`, async () => {
      const response = await server.patch(path, type, '[]');
      assert.equal(response.headers.get('accept-patch'), acceptPatch);
      assert.equal(await saidBy(response), '415 unsupported_media_type');
    });
  }
});

test('an article grows to its limit by patches, and not beyond', async (t) => {
  const server = await start(t, { BODY_BYTES_MAX: '2048' });
  const content = 'x'.repeat(1_500);
  const grow = { op: 'replace', path: '/content', value: content };
  assert.equal((await server.patch('/api/articles/1', jsonPatch, [grow])).status, 204);
  const beyond: readonly (readonly [string, unknown])[] = [
    [mergePatch, { more: content }],
    [jsonPatch, [{ op: 'add', path: '/more', value: content }]],
    [jsonPatch, [{ op: 'copy', from: '/content', path: '/more' }]],
  ];
  for (const [type, body] of beyond) {
    await t.test(JSON.stringify([type, body]).slice(0, 100), async () => {
      const response = await server.patch('/api/articles/1', type, body);
      assert.equal(await saidBy(response), '413 content_too_large');
    });
  }
  const large = await server.send('POST', '/api/articles', { title: 'x', content, more: content });
  assert.equal(await saidBy(large), '413 content_too_large');
});

test('patches that come together lose no update', async (t) => {
  const server = await start(t);
  const responses = await Promise.all(
    times(50).map((index) => {
      const [name, value] = [`member${index}`, index];
      if (index % 2 === 0) return server.patch('/api/articles/1', mergePatch, { [name]: value });
      return server.patch('/api/articles', jsonPatch, [{ op: 'add', path: `/0/${name}`, value }]);
    }),
  );
  assert.ok(responses.every(({ status }) => status === 204));
  const article = (await server.get('/api/articles/1')) as Record<string, unknown>;
  for (const index of times(50)) assert.equal(article[`member${index}`], index, `round ${index}`);
});
