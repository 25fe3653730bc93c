/** "Move a blog" of docs/production.md: its commands, as they stand there. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlinkSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, test, type TestContext } from 'node:test';
import { fileMembers, kinds } from '../../dist/commands/transfer.js';
import { bare, blocksOf, sectionOf, tableOf } from '../support/markdown.ts';
import { projectFolder } from '../support/source.ts';
import { durableStores } from '../support/stores.ts';
import { startServer } from '../support/server.ts';
import { exportFrom, fill, newPlace, type Place } from '../support/transfer.ts';
import { createDirectory } from '../support/uploads.ts';

const page = readFileSync(join(projectFolder, 'docs/production.md'), 'utf8');
const [sqlite, postgres] = durableStores;
if (sqlite === undefined || postgres === undefined) throw new Error('there are two stores');
const skip = sqlite.skip || postgres.skip;

function lacks(name: string): string | false {
  const isThere = spawnSync(name, ['--version']).error === undefined;
  return !isThere && `there is no ${name} on this machine`;
}

const blocksBelow = (heading: string) => blocksOf(sectionOf(page, heading));

/** A folder in which the program is `dist/server.js`, with a file of settings for each place. */
async function prepare(t: TestContext, places: Readonly<Record<string, Place>>) {
  const folder = await createDirectory(t);
  for (const name of ['dist', 'node_modules', 'examples'])
    symlinkSync(join(projectFolder, name), join(folder, name));
  for (const [name, place] of Object.entries(places)) {
    const lines = Object.entries(place).map(([key, value]) => `${key}='${value}'\n`);
    writeFileSync(join(folder, `${name}.env`), lines.join(''));
  }
  return {
    write: (name: string, text: string) => writeFileSync(join(folder, name), text),
    run(command: string): string {
      const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
      const env = { PATH, NODE_OPTIONS: '--disable-warning=ExperimentalWarning' };
      const ended = spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
      assert.deepEqual([ended.status, ended.stderr], [0, '']);
      return ended.stdout;
    },
  };
}

describe('the documents move a blog', { skip }, () => {
  it('from SQLite to PostgreSQL', async (t) => {
    const [old, moved] = [await newPlace(t, sqlite), await newPlace(t, postgres)];
    await fill(t, old, { posts: 120, commentsEach: 0, files: [100] });
    const shell = await prepare(t, { old, new: moved });
    for (const { text } of blocksBelow('### From SQLite to PostgreSQL')) {
      assert.match(shell.run(text), /^Stored \d+ records; 0 were there already\.$/m);
      assert.match(shell.run(text), /^Stored 0 records; \d+ were there already\.$/m);
    }
    assert.equal((await exportFrom(moved)).output, (await exportFrom(old)).output);
  });

  it('to another machine', async (t) => {
    const [old, moved] = [await newPlace(t, postgres), await newPlace(t, sqlite)];
    await fill(t, old, { posts: 3, commentsEach: 2, files: [100] });
    const shell = await prepare(t, { old, new: moved });
    const [first, second] = blocksBelow('### To another machine').map(({ text }) =>
      shell.run(text),
    );
    assert.equal(first, '');
    assert.match(String(second), /^Stored \d\d records; 0 were there already\.$/m);
    assert.equal((await exportFrom(moved)).output, (await exportFrom(old)).output);
  });
});

describe('the documents say what an export has', () => {
  const rows = tableOf(sectionOf(page, '### What an export has'));

  it('with all members, in their order', () => {
    const listed = Object.fromEntries(
      rows.map(([kind = '', members = '']) => [bare(kind), members.match(/(?<=`)\w+(?=`)/g)]),
    );
    const { content, file, article, ...others } = listed;
    const all = Object.entries(kinds).map(([name, { members }]) => [name, members]);
    const { article: document, pending, ...records } = Object.fromEntries(all) as typeof listed;
    assert.deepEqual(others, { ...records, comment: [...(pending ?? []), 'status'] });
    assert.deepEqual([content, file, article?.[0]], [['base64'], fileMembers, document?.[0]]);
  });

  it('in the order of the lines', { skip: sqlite.skip }, async (t) => {
    const place = await newPlace(t, sqlite);
    await fill(t, place, { posts: 3, commentsEach: 2, files: [100] });
    const found = (await exportFrom(place)).output.match(/(?<=^\{"kind":")\w+/gm) ?? [];
    assert.deepEqual([...new Set(found)], [...rows.map(([kind = '']) => bare(kind)), 'end']);
  });
});

describe('the documents bring in posts', { skip: sqlite.skip }, () => {
  const examples = blocksBelow('### From another system');
  const blockWith = (word: string): string =>
    examples.find(({ text }) => text.includes(word))?.text ?? '';

  interface Read extends Readonly<Record<string, unknown>> {
    readonly author: { readonly name: string } | null;
    readonly comments: readonly object[];
  }

  /** What each post has, then its author and its comments, the newest first. */
  async function readAll(t: TestContext, place: Place): Promise<unknown> {
    const server = await startServer(t, { env: { ...place, DEMO_DATA: 'false' } });
    const query = `{ allPosts { title content status createdAt publishedAt
      author { name } comments { name content createdAt } } }`;
    const response = await server.send('POST', '/graphql', { query });
    const { data } = (await response.json()) as { data: { allPosts: Read[] } };
    return data.allPosts.map(({ author, comments, ...rest }) => {
      const said = comments.map((comment) => Object.values(comment).join(', '));
      return [...Object.values(rest), author?.name, ...said];
    });
  }

  it('as the example line has them', async (t) => {
    const place = await newPlace(t, sqlite);
    const shell = await prepare(t, { new: place });
    const line = blockWith('"key":"17"');
    shell.write('posts.jsonl', line);
    const command = 'node --env-file=new.env dist/server.js import <posts.jsonl';
    assert.equal(shell.run(command), 'Stored 2 records; 0 were there already.\n');
  });

  it('of WordPress', { skip: lacks('python3') }, async (t) => {
    const place = await newPlace(t, sqlite);
    const shell = await prepare(t, { new: place });
    shell.write('wordpress.xml', wordpress);
    const command = blockWith('wordpress.py');
    assert.equal(shell.run(command), 'Stored 4 records; 0 were there already.\n');
    assert.equal(shell.run(command), 'Stored 0 records; 4 were there already.\n');
    const [draft, at] = ['2015-06-07T10:09:10', '2012-03-04T05:06:07'];
    const [zoe, eve] = ['Zoë, First!', 'Eve, Well said: 1 < 2.'];
    const comments = [`${zoe}, 2012-03-04T06:00:00`, `${eve}, 2012-03-05T06:00:00`];
    assert.deepEqual(await readAll(t, place), [
      ['UNTITLED', 'Not yet.', 'DRAFT', draft, null, 'bob'],
      ['HELLO & YOU', '<p>Welcome 😀</p>', 'PUBLISHED', at, at, 'ann', ...comments],
    ]);
  });

  it('of Ghost', { skip: lacks('jq') }, async (t) => {
    const place = await newPlace(t, sqlite);
    const shell = await prepare(t, { new: place });
    shell.write('ghost.json', JSON.stringify(ghost));
    const command = blockWith('ghost.jq');
    assert.equal(shell.run(command), 'Stored 2 records; 0 were there already.\n');
    assert.equal(shell.run(command), 'Stored 0 records; 2 were there already.\n');
    const [created, published] = ['2021-01-01T00:00:00', '2021-01-02T03:04:05'];
    assert.deepEqual(await readAll(t, place), [
      ['DRAFT', '-', 'DRAFT', '2022-02-02T02:02:02', null, undefined],
      ['WELCOME', '<p>Hi</p>', 'PUBLISHED', created, published, 'ann'],
    ]);
  });
});

function toMarks(content: string): string {
  const input = JSON.stringify({ title: 'Hello', content });
  const ended = spawnSync('python3', [join(projectFolder, 'examples/page/marks.py')], {
    input,
    encoding: 'utf8',
  });
  assert.deepEqual([ended.status, ended.stderr], [0, '']);
  const { content: marked, ...others } = JSON.parse(ended.stdout) as { readonly content: string };
  assert.deepEqual(others, { title: 'Hello' });
  return marked;
}

test('HTML becomes the marks that the example page shows', { skip: lacks('python3') }, () => {
  for (const [html, marks] of [
    ['<!-- wp:paragraph --><p>One <strong>and <em>all</em></strong>.</p>', 'One **and all**.'],
    ['Old\nlines.\n\nAnd <i>more</i> &amp; more.', 'Old\nlines.\n\nAnd *more* & more.'],
    ['<h2>Head\nline</h2><h4>Less</h4>', '## Head line\n\n### Less'],
    ['<ul><li>a</li><li><p>b</p><ol><li>c</li></ol></li></ul><p>d', '- a\n- b\n- c\n\nd'],
    ['<ol><li>a</li><li>b', '1. a\n1. b'],
    ['<blockquote><p>a<br>b</p></blockquote>', '> a\n> b'],
    ['<pre><code>a &lt; b\n\n*c*</code></pre>', '```\na < b\n\n*c*\n```'],
    ['<a href="https://example.org/a (b)">a <b>c</b></a>', '[a c](https://example.org/a%20(b%29)'],
    ['<figure><img src="/files/a.png" alt="A"></figure>', '![A](/files/a.png)'],
    ['<img src="https://example.org/a.png">', '[picture](https://example.org/a.png)'],
    ['<script>alert(1)</script><style>p {}</style>', '-'],
  ] as const) {
    assert.equal(toMarks(html), marks);
  }
});

/** As WordPress 6 exports, shortened. */
const wordpress = `<?xml version="1.0" encoding="UTF-8" ?>
<rss version="2.0" xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/"
  xmlns:content="http://purl.org/rss/1.0/modules/content/"
  xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:wp="http://wordpress.org/export/1.2/">
<channel><title>Old blog</title><wp:wxr_version>1.2</wp:wxr_version>
<item><title><![CDATA[Hello &amp; <em>you</em>]]></title><dc:creator><![CDATA[ann]]></dc:creator>
  <content:encoded><![CDATA[<p>Welcome 😀</p>]]></content:encoded><wp:post_id>1</wp:post_id>
  <wp:post_date_gmt><![CDATA[2012-03-04 05:06:07]]></wp:post_date_gmt>
  <wp:status><![CDATA[publish]]></wp:status><wp:post_type><![CDATA[post]]></wp:post_type>
  <wp:comment><wp:comment_id>3</wp:comment_id><wp:comment_author><![CDATA[Eve]]></wp:comment_author>
    <wp:comment_date_gmt><![CDATA[2012-03-05 06:00:00]]></wp:comment_date_gmt>
    <wp:comment_content><![CDATA[<b>Well</b> said: 1 &lt; 2.]]></wp:comment_content>
    <wp:comment_approved><![CDATA[1]]></wp:comment_approved></wp:comment>
  <wp:comment><wp:comment_id>2</wp:comment_id><wp:comment_author><![CDATA[Spammer]]></wp:comment_author>
    <wp:comment_date_gmt><![CDATA[2012-03-04 05:30:00]]></wp:comment_date_gmt>
    <wp:comment_content><![CDATA[Buy!]]></wp:comment_content>
    <wp:comment_approved><![CDATA[spam]]></wp:comment_approved></wp:comment>
  <wp:comment><wp:comment_id>1</wp:comment_id><wp:comment_author><![CDATA[Zoë]]></wp:comment_author>
    <wp:comment_date_gmt><![CDATA[2012-03-04 06:00:00]]></wp:comment_date_gmt>
    <wp:comment_content><![CDATA[First!]]></wp:comment_content>
    <wp:comment_approved><![CDATA[1]]></wp:comment_approved></wp:comment></item>
<item><title></title><dc:creator><![CDATA[bob]]></dc:creator>
  <content:encoded><![CDATA[Not yet.]]></content:encoded><wp:post_id>12</wp:post_id>
  <wp:post_date><![CDATA[2015-06-07 10:09:10]]></wp:post_date>
  <wp:post_date_gmt><![CDATA[0000-00-00 00:00:00]]></wp:post_date_gmt>
  <wp:status><![CDATA[draft]]></wp:status><wp:post_type><![CDATA[post]]></wp:post_type></item>
<item><title>About</title><dc:creator><![CDATA[ann]]></dc:creator>
  <content:encoded><![CDATA[a page]]></content:encoded><wp:post_id>2</wp:post_id>
  <wp:status><![CDATA[publish]]></wp:status><wp:post_type><![CDATA[page]]></wp:post_type></item>
</channel></rss>`;

/** As Ghost 5 exports, shortened. */
const [made, published_at] = ['2021-01-01T00:00:00.000Z', '2021-01-02T03:04:05.000Z'];
const isDraft = { status: 'draft', created_at: '2022-02-02T02:02:02.000Z', published_at: null };
const isPublished = { status: 'published', created_at: made, published_at };
const data = {
  posts: [
    { id: '65', title: 'Draft', html: '', plaintext: null, type: 'post', ...isDraft },
    { id: '64', title: 'Welcome', html: '<p>Hi</p>', type: 'post', ...isPublished },
    { id: '63', title: 'About', html: '<p>me</p>', type: 'page', ...isPublished },
  ],
  users: [{ id: '1', name: 'Ann A.', slug: 'ann', email: 'ann@example.org' }],
  posts_authors: [{ id: '1', post_id: '64', author_id: '1', sort_order: 0 }],
};
const ghost = { db: [{ meta: { exported_on: 1_700_000_000_000, version: '5.70.0' }, data }] };
