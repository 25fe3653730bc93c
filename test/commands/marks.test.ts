/** `examples/page/marks.py`: the HTML of imported posts as the marks of the page. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectFolder } from '../support/source.ts';

const program = join(projectFolder, 'examples/page/marks.py');
const skip =
  spawnSync('python3', ['--version']).error !== undefined && 'there is no python3 on this machine';

function toMarks(content: string): string {
  const input = JSON.stringify({ title: 'Hello', content });
  const ended = spawnSync('python3', [program], { input, encoding: 'utf8' });
  assert.deepEqual([ended.status, ended.stderr], [0, '']);
  const { content: marked, ...others } = JSON.parse(ended.stdout) as { readonly content: string };
  assert.deepEqual(others, { title: 'Hello' });
  return marked;
}

test('HTML becomes the marks that the example page shows', { skip }, () => {
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
