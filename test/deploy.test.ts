/** What the examples in deploy/ say about the rest of the repository holds. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { secretSettings, settings } from '../dist/config.js';
import type { Setting } from '../dist/settings.js';
import { projectFolder } from './support/source.js';

const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');
const dockerfile = read('deploy/Dockerfile');
const compose = read('deploy/compose.yaml');
const kubernetes = read('deploy/kubernetes.yaml');
const unit = read('deploy/inkwell.service');
const { devDependencies } = JSON.parse(read('package.json')) as {
  readonly devDependencies: Readonly<Record<string, string>>;
};

const names = new Set([
  ...Object.values<Setting<unknown>>(settings).map(({ name }) => name),
  ...secretSettings.map(({ name }) => `${name}_FILE`),
]);

describe('the Dockerfile', () => {
  it('copies what is there and what .dockerignore lets in', () => {
    const allowed = read('.dockerignore').split('\n');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) =>
      (paths ?? '').split(' '),
    );
    assert.ok(copied.includes('src'));
    for (const path of copied) {
      assert.ok(existsSync(join(projectFolder, path)), path);
      assert.ok(allowed.includes(`!${path}`), path);
    }
  });

  it('installs the version of the driver that is tested, and no development packages', () => {
    const [, version] = /pg@(\S+)/.exec(dockerfile) ?? [];
    assert.equal(version, devDependencies['pg']);
    assert.match(dockerfile, /npm ci --omit=dev --ignore-scripts/);
  });

  it('does not run as root', () => {
    assert.match(dockerfile, /^USER node$/m);
  });
});

describe('the examples', () => {
  it('name exact versions of images', () => {
    const images = [...`${dockerfile}\n${compose}`.matchAll(/^\s*(?:FROM|image:) (\S+)/gm)];
    assert.equal(images.length, 4);
    for (const [, image] of images) assert.match(image ?? '', /^\w+:\d+\.\d+(?:\.\d+)?-alpine/);
  });

  it('set only settings that there are', () => {
    const [, environment = ''] = /^ {2}environment:\n((?: {4}.*\n)+)/m.exec(compose) ?? [];
    const set = [
      ...[...environment.matchAll(/^ +([A-Z_]+):/gm)].map(([, name]) => name),
      ...[...kubernetes.matchAll(/^ +- \{ name: ([A-Z_]+), value/gm)].map(([, name]) => name),
      ...[...unit.matchAll(/^Environment=([A-Z_]+)=/gm)].map(([, name]) => name),
      ...[...dockerfile.matchAll(/(?<=^ENV .*)\b([A-Z_]+)=/gm)].map(([, name]) => name),
    ];
    assert.ok(set.length > 8);
    for (const name of set) assert.ok(names.has(name ?? ''), name);
  });

  it('give no secret in an environment variable', () => {
    for (const { name } of secretSettings)
      assert.doesNotMatch(compose, new RegExp(`^ +${name}:`, 'm'));
  });
});
