import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import { jsonPatch, mergePatch, type Problem, saidBy, start } from '../support/articles.ts';
import { pluck, times } from '../support/lists.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

type Article = Readonly<Record<string, unknown>>;

test('the two articles of the start are listed and found by id', async (t) => {
  const server = await start(t);
  const articles = await server.read<Article[]>('/api/articles');
  assert.deepEqual(pluck(articles, 'id'), [1, 2]);
  for (const article of articles) {
    const members = ['id', 'title', 'author', 'content', 'tags', 'publishedAt'];
    assert.deepEqual(Object.keys(article), members);
    assert.deepEqual(await server.read(`/api/articles/${String(article['id'])}`), article);
  }
});

test('an id that names no article is 404, for every method', async (t) => {
  const server = await start(t);
  const ids = '3 0 01 -1 +1 1.0 1e0 x %31%20 %D9%A1 9007199254740992'.split(' ');
  for (const path of ids.map((id) => `/api/articles/${id}`)) {
    for (const response of [
      await server.fetch(path),
      await server.fetch(path, { method: 'DELETE' }),
      await server.patch(path, mergePatch, {}),
      await server.patch(path, jsonPatch, []),
    ]) {
      assert.equal(await saidBy(response), '404 not_found', path);
    }
  }
});

test('a new article takes the next free id, or its own, and its link can be followed', async (t) => {
  const server = await start(t);
  const created = await server.send('POST', '/api/articles', { title: 'Third' });
  assert.deepEqual([created.status, await created.text()], [201, '']);
  assert.equal(created.headers.get('location'), '/articles/3');
  for (const method of ['GET', 'DELETE']) {
    const redirect = await server.fetch('/articles/3', { method, redirect: 'manual' });
    assert.equal(redirect.status, 308, method);
    assert.equal(redirect.headers.get('location'), '/api/articles/3', method);
  }
  assert.deepEqual(await server.read('/articles/3'), { title: 'Third', id: 3 });
  assert.equal(await saidBy(await server.fetch('/articles/03')), '404 not_found');
  const own = { id: 4, title: 'Mine', extra: [1] };
  assert.equal(await server.make('/api/articles', own), '/articles/4');
  assert.equal(await server.make('/api/articles', { title: 'Next' }), '/articles/5');
  assert.deepEqual(await server.read('/api/articles/4'), own);
  await server.make('/api/articles', { id: 4, title: 'Replaced' });
  assert.deepEqual(await server.read('/api/articles/4'), { id: 4, title: 'Replaced' });
  assert.equal((await server.read<Article[]>('/api/articles')).length, 5);
});

test('an article keeps its own names, whatever others are called (R10)', async (t) => {
  const server = await start(t);
  const post = async (names: string): Promise<string> => {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: `{"title":"a","${names}":1}` };
    return `/api${(await server.fetch('/api/articles', init)).headers.get('location')}`;
  };
  // Node 24 reads the names of the second as those of the first.
  for (const [before, name, written] of [
    ['\\\\', '"', '\\"'],
    ['\\\\u0', 'été', '\\u00e9t\\u00e9'],
  ] as const) {
    const both = [await post(before), await post(written)] as const;
    const text = `${JSON.stringify(name)}:`;
    const check = async (part: string): Promise<void> =>
      assert.ok((await (await server.fetch(both[1])).text()).includes(part), part);
    await check(`{"title":"a",${text}1,`);
    for (const [at, each] of [before, written].entries()) {
      await server.patch(both[at] ?? '', mergePatch, `{"title":"b","${each}":2}`);
    }
    await check(`{"title":"b",${text}2,`);
    for (const path of both) {
      await server.patch(path, jsonPatch, [{ op: 'copy', from: '', path: '/of' }]);
    }
    await check(`"of":{"title":"b",${text}2,`);
  }
});

test('a body that is no article is refused and nothing is stored', async (t) => {
  const server = await start(t);
  const refused = await server.send('POST', '/api/articles', { title: 1, tags: ['a', 2] });
  const { errors = [] } = (await refused.json()) as Problem;
  assert.deepEqual([refused.status, ...pluck(errors, 'pointer')], [422, '/title', '/tags/1']);
  assert.equal((await server.read<Article[]>('/api/articles')).length, 2);
});

test('a number of up to 17 digits that names a double is taken, and no other (R10)', async (t) => {
  const server = await start(t);
  // As PHP, jansson and `%.17g` of C write 9.95, 0.1, 1e23, -1.1 and the greatest double.
  const exact = ['9.9499999999999993', '0.10000000000000001', '9.9999999999999992e+22'];
  exact.push('-1.1000000000000001', '1.7976931348623157e+308', '4.9406564584124654e-324');
  const rounded = ['9007199254740993', '9.9499999999999994', '0.1000000000000000055', '1e400'];
  for (const number of [...exact, ...rounded]) {
    const { status } = await server.patch('/api/articles/1', mergePatch, `{"price":${number}}`);
    assert.equal(status, exact.includes(number) ? 204 : 400, number);
  }
});

test('null of an optional member is absent where a record is created (R8)', async (t) => {
  const server = await start(t);
  const nulls = { id: null, author: null, content: null, tags: null, publishedAt: null };
  const author = { givenName: null, familyName: 'b' };
  for (const [body, found] of [
    [nulls, { title: 'x', id: 3 }],
    [
      { author, other: null },
      { title: 'x', author: { familyName: 'b' }, other: null, id: 4 },
    ],
  ] as const) {
    const path = await server.make('/api/articles', { title: 'x', ...body });
    assert.deepEqual(await server.read(path), found);
  }
  const todo = await server.make('/api/todos', { title: 'x', completed: null });
  assert.equal((await server.read<Article>(todo))['completed'], false);
  // What is required stays so.
  assert.equal((await server.send('POST', '/api/articles', { title: null })).status, 422);
});

test('a JSON Patch changes articles by their index, or what it names of one', async (t) => {
  const server = await start(t);
  const patched = await server.patch('/api/articles', jsonPatch, [
    { op: 'replace', path: '/0/title', value: 'First' },
    { op: 'replace', path: '/1/content', value: 'New content' },
    { op: 'replace', path: '/1/author/familyName', value: 'Murray' },
    { op: 'add', path: '/1/tags/1', value: 'added' },
  ]);
  assert.deepEqual([patched.status, await patched.text()], [204, '']);
  const [first, second, ...more] = await server.read<Article[]>('/api/articles');
  assert.deepEqual([first?.['title'], second?.['content']], ['First', 'New content']);
  assert.deepEqual(second?.['author'], { givenName: 'Grace', familyName: 'Murray' });
  assert.deepEqual([second?.['tags'], more], [['http', 'added', 'json'], []]);
  const one = await server.patch('/api/articles/1', `${jsonPatch}; charset=UTF-8`, [
    { op: 'test', path: '/id', value: 1 },
    { op: 'replace', path: '/title', value: 'Changed' },
    { op: 'add', path: '/more', value: { any: null } },
  ]);
  assert.equal(one.status, 204);
  const changed = { ...first, title: 'Changed', more: { any: null } };
  assert.deepEqual(await server.read('/api/articles/1'), changed);
});

type Rows = readonly (readonly [body: unknown, said: string])[];
const replace = (path: string, value: unknown) => ({ op: 'replace', path, value });

describe('a patch that does not hold changes nothing', () => {
  const refuse = async (t: TestContext, [path, type]: readonly [string, string], rows: Rows) => {
    const server = await start(t);
    const before = await server.read(path);
    for (const [body, expected] of rows) {
      const response = await server.patch(path, type, body);
      const { errors = [] } = (await response.clone().json()) as Problem;
      const pointers = pluck(errors, 'pointer').map((pointer) => ` ${pointer}`);
      const said = (await saidBy(response)) + (path.endsWith('s') ? pointers.join('') : '');
      assert.equal(said, expected, JSON.stringify(body).slice(0, 100));
      assert.deepEqual(await server.read(path), before);
    }
    return server;
  };

  it('of the collection, in any of its articles', async (t) => {
    const rows: Rows = [
      [replace('/2/title', 'x'), '409 patch_not_applicable /1'],
      [{ op: 'test', path: '/1/title', value: 'x' }, '409 patch_not_applicable /1'],
      [replace('/1/title', ''), '422 invalid_body /1/title'],
      [replace('/1/id', 9), '422 invalid_body /1/id'],
      [{ op: 'remove', path: '/1/id' }, '422 invalid_body /1/id'],
      [{ op: 'remove', path: '/1' }, '422 invalid_body '],
      [{ op: 'add', path: '/-', value: { id: 3, title: 'x' } }, '422 invalid_body '],
      [{ op: 'move', from: '/1', path: '/0' }, '422 invalid_body /0/id /1/id'],
      [{ op: 'copy', from: '/0', path: '/1' }, '422 invalid_body '],
      ...[[], null, {}].map((value) => [replace('', value), '422 invalid_body '] as const),
      [replace('', [null, { id: 2, title: '' }]), '422 invalid_body /0 /1/title'],
      [{ op: 'spam', path: '/0' }, '400 invalid_patch /1/op'],
    ];
    const good = replace('/0/title', 'Lost');
    const all = rows.map(([bad, said]) => [[good, bad], said] as const);
    await refuse(t, ['/api/articles', jsonPatch], all);
  });

  it('of one article', async (t) => {
    const good = replace('/title', 'Lost');
    const add = (path: string, value: unknown): object => ({ op: 'add', path, value });
    const deep = JSON.parse('['.repeat(60) + ']'.repeat(60)) as unknown;
    await refuse(
      t,
      ['/api/articles/1', jsonPatch],
      [
        ['[', '400 invalid_json'],
        ['', '400 invalid_json'],
        ['[{"op":"add","path":"/a","value":{"__proto__":1}}]', '400 invalid_json'],
        [{}, '400 invalid_patch'],
        [[good, add('/__proto__/x', 1)], '400 invalid_patch'],
        [[good, { op: 'remove', path: '/none' }], '409 patch_not_applicable'],
        [[good, { op: 'test', path: '/title', value: 'Other' }], '409 patch_not_applicable'],
        [[good, replace('/id', 2)], '422 invalid_body'],
        [[{ op: 'remove', path: '' }], '422 invalid_body'],
        [[good, replace('/tags', [1])], '422 invalid_body'],
        [[add('/x', [[[[]]]]), add('/x/0/0/0/0', deep)], '422 invalid_body'],
        [Array.from({ length: 1_001 }, () => good), '413 content_too_large'],
      ],
    );
  });

  it('of one article, as a merge patch', async (t) => {
    const wrong = [{ title: null }, { id: null }, { id: 2 }, { id: '1' }, { publishedAt: 'never' }];
    const rows = [...wrong, { tags: { 0: 'x' } }, [], 'null'].map(
      (body) => [body, '422 invalid_body'] as const,
    );
    const all: Rows = [...rows, ['{', '400 invalid_json']];
    const server = await refuse(t, ['/api/articles/1', mergePatch], all);
    assert.equal((await server.patch('/api/articles/1', mergePatch, { id: 1 })).status, 204);
  });

  it('of another media type, and those that would do are named', async (t) => {
    const server = await start(t);
    const both = `${jsonPatch}, ${mergePatch}`;
    for (const [path, type, acceptPatch] of [
      ['/api/articles/1', 'application/json', both],
      ['/api/articles/1', `${jsonPatch}; charset=iso-8859-1`, both],
      ['/api/articles', mergePatch, jsonPatch],
      ['/api/articles', 'application/json', jsonPatch],
    ] as const) {
      const response = await server.patch(path, type, '[]');
      assert.equal(response.headers.get('accept-patch'), acceptPatch, `${path} ${type}`);
      assert.equal(await saidBy(response), '415 unsupported_media_type');
    }
  });
});

test('an article grows to its limit by patches, and not beyond', async (t) => {
  const server = await start(t, { BODY_BYTES_MAX: '2048' });
  const content = 'x'.repeat(1_500);
  const path = '/api/articles/1';
  assert.equal((await server.patch(path, jsonPatch, [replace('/content', content)])).status, 204);
  for (const response of [
    await server.patch(path, mergePatch, { more: content }),
    await server.patch(path, jsonPatch, [{ op: 'add', path: '/more', value: content }]),
    await server.patch(path, jsonPatch, [{ op: 'copy', from: '/content', path: '/more' }]),
    await server.send('POST', '/api/articles', { title: 'x', content, more: content }),
  ]) {
    assert.equal(await saidBy(response), '413 content_too_large');
  }
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
  const article = await server.read<Article>('/api/articles/1');
  for (const index of times(50)) assert.equal(article[`member${index}`], index, `round ${index}`);
});
