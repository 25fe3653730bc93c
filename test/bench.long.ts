/** Each program in bench/, with sizes that take seconds: it prints its tables, and writes them. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { skipPostgres } from './support/postgres.ts';
import { projectFolder } from './support/source.ts';
import { skipSqlite } from './support/sqlite.ts';

interface Figures {
  readonly date: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly tables: readonly {
    readonly title: string;
    readonly head: readonly string[];
    readonly rows: readonly (readonly (string | number | null)[])[];
  }[];
}

const withSqlite = skipSqlite === false ? 1 : 0;
const withPostgres = skipPostgres === false ? 1 : 0;
const noStore =
  withSqlite + withPostgres === 0 && 'there is neither SQLite nor PostgreSQL on this machine';
const short = '--rounds=1 --seconds=0.2';
const shapes = 'none,T4-batch,T6-get,T9-removal,T11-all,T14-aliases --connections=6';
/** The first run installs what the peer needs. */
const peer = `${short} --warm=0.1 --posts=20 --only=postById_with_author,_comments`;

/** How many rows each of its tables has. */
const benches: readonly (readonly [name: string, args: string, rows: number[], string | false])[] =
  [
    ['bench.mjs', `${short} --warm=0.1 --connections=2 --posts=12`, [29, 2], false],
    ['peer.mjs', peer, Array.from({ length: 1 + withSqlite + withPostgres }, () => 1), false],
    ['sockets.mjs', '--sockets=20', [1], false],
    ['delays.mjs', '--posts=20 --comments=1 --mib=2 --seconds=0.3', [4], false],
    ['attacks.mjs', `--shapes=${shapes} --seconds=1 --posts=20 --comments=20`, [6], false],
    [
      'growth.mjs',
      '--posts=100 --seconds=0.2',
      [1 + withSqlite + 2 * withPostgres, 6 * (1 + withSqlite + withPostgres)],
      false,
    ],
    [
      'stores.mjs',
      `${short} --posts=20`,
      [2 * withSqlite + 3 * withPostgres, 2 * (withSqlite + withPostgres), 2 * withPostgres],
      noStore,
    ],
    ['uploads.mjs', '--uploads=3 --files=20', [4 + 8 * (withSqlite + withPostgres)], false],
    ['fan-out.mjs', '--subscribers=6 --comments=60 --writers=3', [2], skipPostgres],
    ['nodes.mjs', '--seconds=0.5 --rate=40', [4, 4], skipPostgres],
    ['beyond.mjs', '--comments=900 --readers=1,2 --events=9 --inserts=50', [2, 2, 1], skipPostgres],
  ];

describe('the programs in bench/', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inkwell-bench-test-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  for (const [name, args, rows, skip] of benches) {
    it(`${name} prints its tables, and writes their figures`, { skip }, async () => {
      const file = join(folder, `${name}.json`);
      const given = args.split(' ').map((argument) => argument.replaceAll('_', ' '));
      const command = [join(projectFolder, 'bench', name), ...given, '--json', file];
      const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: folder });
      const figures = JSON.parse(await readFile(file, 'utf8')) as Figures;
      const { date, machine, versions, tables } = figures;
      assert.match(date, /^\d{4}-\d\d-\d\d$/);
      assert.equal(versions['node'], process.versions.node);
      assert.equal(typeof machine['cpu'], 'string');
      const found = tables.map((table) => table.rows.length);
      assert.deepEqual(found, rows, stdout);
      for (const { title, head, rows: shown } of tables) {
        assert.ok(stdout.includes(`\n${title}\n`), title);
        assert.ok(stdout.includes(`| ${head.join(' | ')} |`), title);
        for (const cells of shown) {
          assert.equal(cells.length, head.length, title);
          // Null is what could not be measured: elsewhere than on Linux there is no CPU time.
          if (process.platform === 'linux') assert.ok(!cells.includes(null), cells.join(' '));
        }
      }
    });
  }
});
