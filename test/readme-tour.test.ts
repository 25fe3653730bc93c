/** Pastes the examples of the documents into a shell: each prints what its page shows. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { blocksOf, sectionOf, type Block } from './support/markdown.js';
import { runProgram } from './support/program.js';
import { noShell } from './support/shell.js';
import { projectFolder } from './support/source.js';

const mark = '=== end of block ===';

/** All blocks in one shell, as a person would paste them; what each of them printed. */
async function paste(blocks: readonly Block[], folder: string): Promise<string[]> {
  const script = blocks.map((block) => `${block.text}\nprintf '\\n%s\\n' '${mark}'\n`).join('');
  const shell = spawn('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: projectFolder,
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
  });
  const [printed, faults] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
  const shown = printed.split(`\n${mark}\n`);
  assert.equal(shown.length - 1, blocks.length, `block ${shown.length} fails: ${faults}`);
  return shown.slice(0, -1);
}

/** In what the README states, `…` stands for anything within the line. */
function toPattern(stated: string): RegExp {
  const parts = stated.trim().split('…');
  const exact = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${exact.join('.*')}$`);
}

const sections = [
  { page: 'README.md', heading: '## A tour', blocksMin: 6 },
  { page: 'docs/graphql.md', heading: '## Examples', blocksMin: 2 },
];

for (const { page, heading, blocksMin } of sections) {
  test(`the examples of ${page} print what the page shows`, { skip: noShell }, async (context) => {
    const program = await runProgram(context);
    const host = `127.0.0.1:${(await program.listening()).port}`;
    const whole = await readFile(join(projectFolder, page), 'utf8');
    const blocks = blocksOf(sectionOf(whole, heading).replaceAll('localhost:8080', host));
    const printed = await paste(
      blocks.filter(({ language }) => language === 'sh'),
      program.folder,
    );
    assert.ok(printed.length >= blocksMin, 'the page has its blocks');
    let shown = -1;
    const wrong = blocks.flatMap(({ language, text: stated }) => {
      if (language === 'sh') shown += 1;
      const output = (printed[shown] ?? '').replaceAll('\r', '').trim();
      return language === 'sh' || toPattern(stated).test(output) ? [] : [{ stated, output }];
    });
    assert.deepEqual(wrong, []);
  });
}
