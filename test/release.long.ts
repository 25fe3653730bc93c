/** The files of a release, as `npm run release` makes them. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { projectFolder } from './support/source.ts';

const run = promisify(execFile);

interface Sbom {
  readonly bomFormat: string;
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly hashes: readonly { readonly alg: string; readonly content: string }[];
    readonly licenses: readonly unknown[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const { version } = JSON.parse(await readFile(join(projectFolder, 'package.json'), 'utf8')) as {
  readonly version: string;
};
const archive = `inkwell-${version}`;

/** Every package of production, direct or not. */
const packages =
  'busboy fast-deep-equal fast-json-patch graphql graphql-ws json-merge-patch streamsearch uuid ws'.split(
    ' ',
  );

describe('a release', () => {
  let folder: string;
  let output: string;
  const release = async (name: string): Promise<string> => {
    const script = join(projectFolder, 'scripts', 'release.mjs');
    return (await run(process.execPath, [script, join(folder, name)])).stdout;
  };
  const namesIn = async (name: string): Promise<string[]> =>
    (await readdir(join(folder, name))).toSorted();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inkwell-release-test-'));
    output = await release('one');
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('has the archive, its list of packages and checksums; the executable, or a line why not', async () => {
    const names = await namesIn('one');
    const isPlain = (name: string): boolean => !/-(?:linux|darwin|win32)-/.test(name);
    const plain = ['SHA256SUMS', `${archive}.cdx.json`, `${archive}.tar.gz`];
    assert.deepEqual(names.filter(isPlain), plain);
    const sums = (await readFile(join(folder, 'one', 'SHA256SUMS'), 'utf8')).trimEnd().split('\n');
    assert.equal(sums.length, names.length - 1);
    for (const name of names.slice(1)) {
      const content = await readFile(join(folder, 'one', name));
      const sum = createHash('sha256').update(content).digest('hex');
      assert.ok(sums.includes(`${sum}  ${name}`), name);
    }
    const others = names.filter((name) => !isPlain(name));
    if (others.length === 0) assert.match(output, /^No executable: Node \d+\.\d+/m);
    else assert.equal(others.length, 3);
  });

  it('lists the nine packages with their licences and hashes', async () => {
    const text = await readFile(join(folder, 'one', `${archive}.cdx.json`), 'utf8');
    const sbom = JSON.parse(text) as Sbom;
    assert.equal(sbom.bomFormat, 'CycloneDX');
    assert.equal(sbom.components.map(({ name }) => name).join(), packages.join());
    for (const { name, hashes, licenses } of sbom.components) {
      assert.equal(licenses.length, 1, name);
      assert.equal(hashes[0]?.alg, 'SHA-512', name);
      assert.match(hashes[0]?.content ?? '', /^[0-9a-f]{128}$/, name);
    }
    // Seven are direct.
    assert.equal(sbom.dependencies[0]?.dependsOn.length, 7);
  });

  it('lists fourteen packages more where the driver for PostgreSQL is inside', async () => {
    const script = join(projectFolder, 'scripts', 'sbom.mjs');
    const { stdout } = await run(process.execPath, [script, '--pg']);
    const names = (JSON.parse(stdout) as Sbom).components.map(({ name }) => name);
    for (const name of ['pg', ...packages]) assert.ok(names.includes(name), name);
    assert.equal(names.length, 23);
  });

  it('has the notices of all that is inside', async () => {
    await run('tar', ['-xzf', `one/${archive}.tar.gz`], { cwd: folder });
    const notices = await readFile(join(folder, archive, 'THIRD-PARTY-NOTICES'), 'utf8');
    const bundle = await readFile(join(folder, archive, 'inkwell.mjs'), 'utf8');
    for (const name of packages) {
      const title = new RegExp(`^={80}\\n${name} [0-9.]+\\n\\n[^=]*(?:copyright|licen[cs]e)`, 'im');
      assert.match(notices, title);
      assert.match(bundle, title);
    }
    for (const name of ['altair-static', 'swagger-ui-dist']) {
      assert.match(notices, new RegExp(`^={80}\\n${name} [0-9.]+$`, 'm'));
    }
  });

  it('has the same bytes when it is made again', async () => {
    await release('two');
    const [one, two] = await Promise.all(
      ['one', 'two'].map((name) => readFile(join(folder, name, `${archive}.tar.gz`))),
    );
    assert.ok(one !== undefined && two !== undefined && one.equals(two));
  });

  it('is not made in a folder that has files', async () => {
    await assert.rejects(release('one'), { code: 1 });
  });
});
