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

interface Bench {
  readonly args: string;
  readonly only?: string;
  /** How many rows each of its tables has. */
  readonly rows: readonly number[];
  readonly skip?: string | false;
}

const withSqlite = skipSqlite === false ? 1 : 0;
const withPostgres = skipPostgres === false ? 1 : 0;

const benches: Readonly<Record<string, Bench>> = {
  'bench.mjs': {
    args: '--rounds=1 --seconds=0.2 --warm=0.1 --connections=2 --posts=12',
    rows: [29, 2],
  },
  // The first run installs what the peer needs.
  'peer.mjs': {
    args: '--rounds=1 --seconds=0.2 --warm=0.1 --posts=20',
    only: 'postById with author, comments',
    rows: Array.from({ length: 1 + withSqlite + withPostgres }, () => 1),
  },
  'sockets.mjs': { args: '--sockets=20', rows: [1] },
  'delays.mjs': {
    args: '--posts=20 --comments=1 --mib=2 --seconds=0.3',
    rows: [4],
  },
  'attacks.mjs': {
    args: '--shapes=none,T4-batch,T6-get,T9-removal,T11-all,T14-aliases --connections=6 --seconds=1 --posts=20 --comments=20',
    rows: [6],
  },
  'growth.mjs': {
    args: '--posts=100 --seconds=0.2',
    rows: [1 + withSqlite + 2 * withPostgres, 6 * (1 + withSqlite + withPostgres)],
  },
  'stores.mjs': {
    args: '--seconds=0.2 --rounds=1 --posts=20',
    rows: [2 * withSqlite + 3 * withPostgres, 2 * (withSqlite + withPostgres), 2 * withPostgres],
    skip: withSqlite + withPostgres === 0 && 'there is neither SQLite nor PostgreSQL',
  },
  'uploads.mjs': {
    args: '--uploads=3 --files=20',
    rows: [4 + 8 * (withSqlite + withPostgres)],
  },
  'fan-out.mjs': {
    args: '--subscribers=6 --comments=60 --writers=3',
    rows: [2],
    skip: skipPostgres,
  },
  'nodes.mjs': { args: '--seconds=0.5 --rate=40', rows: [4, 4], skip: skipPostgres },
  'beyond.mjs': {
    args: '--comments=1000 --readers=1,2 --events=10 --inserts=50',
    rows: [2, 2, 1],
    skip: skipPostgres,
  },
};

describe('the programs in bench/', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inkwell-bench-test-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  for (const [name, { args, only, rows, skip = false }] of Object.entries(benches)) {
    it(`${name} prints its tables, and writes their figures`, { skip }, async () => {
      const file = join(folder, `${name}.json`);
      const given = [...args.split(' '), ...(only === undefined ? [] : [`--only=${only}`])];
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [join(projectFolder, 'bench', name), ...given, '--json', file],
        { cwd: folder },
      );
      const { date, machine, versions, tables } = JSON.parse(
        await readFile(file, 'utf8'),
      ) as Figures;
      assert.match(date, /^\d{4}-\d\d-\d\d$/);
      assert.equal(versions['node'], process.versions.node);
      assert.equal(typeof machine['cpu'], 'string');
      assert.deepEqual(
        tables.map((table) => table.rows.length),
        rows,
        stdout,
      );
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
