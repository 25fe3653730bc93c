/** Pastes the examples of the documents into a shell: each prints what its page shows. */

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { blocksOf, sectionOf, type Block } from './support/markdown.js';
import { noShell } from './support/shell.js';
import { projectFolder } from './support/source.js';

/** The program on a free port; resolves once it says where it listens. */
async function startProgram(folder: string): Promise<{ program: ChildProcess; url: string }> {
  const program = spawn(process.execPath, [join(projectFolder, 'dist', 'server.js')], {
    env: { PATH: process.env['PATH'], PORT: '0', HOST: '127.0.0.1', UPLOAD_DIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: program.stdout })) {
    const { event, url } = JSON.parse(line) as { event: string; url: string };
    if (event === 'listening') {
      program.stdout.resume();
      return { program, url };
    }
  }
  throw new Error('the program ended before it listened');
}

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
  test(`the examples of ${page} print what the page shows`, { skip: noShell }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'inkwell-tour-'));
    const { program, url } = await startProgram(folder);
    try {
      const whole = await readFile(join(projectFolder, page), 'utf8');
      const tour = sectionOf(whole, heading).replaceAll('http://localhost:8080', url);
      const blocks = blocksOf(tour.replaceAll('ws://localhost:8080', url.replace('http', 'ws')));
      const printed = await paste(
        blocks.filter(({ language }) => language === 'sh'),
        folder,
      );
      assert.ok(printed.length >= blocksMin, 'the page has its blocks');
      let shown = -1;
      const wrong = blocks.flatMap(({ language, text: stated }) => {
        if (language === 'sh') shown += 1;
        const output = (printed[shown] ?? '').replaceAll('\r', '').trim();
        return language === 'sh' || toPattern(stated).test(output) ? [] : [{ stated, output }];
      });
      assert.deepEqual(wrong, []);
    } finally {
      program.kill('SIGTERM');
      await once(program, 'exit');
      await rm(folder, { recursive: true, force: true });
    }
  });
}
