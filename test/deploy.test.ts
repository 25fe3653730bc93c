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
const { devDependencies, peerDependencies } = JSON.parse(read('package.json')) as Readonly<
  Record<'devDependencies' | 'peerDependencies', Readonly<Record<string, string>>>
>;
const { packages: locked } = JSON.parse(read('package-lock.json')) as {
  readonly packages: Readonly<
    Record<string, { version?: string; link?: boolean; integrity?: string }>
  >;
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
    // Then it is a dependency like others, and the lock says which version.
    assert.match(dockerfile, /npm pkg delete devDependencies\.pg peerDependenciesMeta /);
    assert.deepEqual(Object.keys(peerDependencies), ['pg']);
    assert.equal(locked['node_modules/pg']?.version, devDependencies['pg']);
    assert.match(dockerfile, /npm ci --omit=dev --ignore-scripts/);
  });

  it('installs what the lock has a hash of, and nothing else', () => {
    // `npm ci` refuses what differs from the lock; other commands choose versions themselves.
    assert.doesNotMatch(dockerfile, /\bnpm (?!ci |pkg |run build)|\bnpx\b|\bapk\b/);
    const unpinned = Object.entries(locked)
      .filter(([path, { link, integrity }]) => /node_modules/.test(path) && !link && !integrity)
      .map(([path]) => path);
    assert.deepEqual(unpinned, []);
  });

  it('has the base image that SECURITY.md names, of a Node version that gets security fixes', () => {
    const images = new Set([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image));
    assert.equal(images.size, 1);
    const [image = ''] = images;
    assert.ok(read('SECURITY.md').includes(`\`${image}\``), image);
    const [, major, minor] = /^node:(\d+)\.(\d+)\.\d+-alpine$/.exec(image) ?? [];
    assert.ok(read('SECURITY.md').includes(`security fixes**: ${major},`), image);
    assert.ok(Number(minor) >= 21, image);
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

  it('keep idle connections for longer than the proxy does', () => {
    const texts = [compose, kubernetes, unit];
    for (const text of texts) {
      const [, seconds] = /KEEP_ALIVE_SECONDS(?:=|: '|, value: ')(\d+)/.exec(text) ?? [];
      assert.ok(Number(seconds) >= 75, `${seconds}`);
    }
  });

  it('fix no address that another container may get', () => {
    assert.match(compose, /ipv4_address: 172\.28\.0\.2\n/);
    assert.match(compose, /TRUSTED_PROXIES: 172\.28\.0\.2\n/);
    assert.match(compose, /ip_range: 172\.28\.0\.128\/25\n/);
  });

  it('wait for a stop with its delay before they kill', () => {
    const delays = /DRAIN_DELAY_SECONDS: '(\d+)'[^]*stop_grace_period: (\d+)s/.exec(compose) ?? [];
    assert.ok(Number(delays[2]) > Number(delays[1]) + 9);
    const [, delay] = /DRAIN_DELAY_SECONDS, value: '(\d+)'/.exec(kubernetes) ?? [];
    const [, grace] = /terminationGracePeriodSeconds: (\d+)/.exec(kubernetes) ?? [];
    assert.ok(Number(grace) > Number(delay) + 9);
  });

  it('alert on metrics that there are', () => {
    const alerts = read('deploy/alerts.yaml').matchAll(/\binkwell_\w+/g);
    const used = new Set(Array.from(alerts, ([name]) => name.replace(/_(?:count|bucket)$/, '')));
    assert.ok(used.size > 4);
    for (const name of used) assert.ok(read('docs/production.md').includes(`\`${name}\``), name);
  });

  it('give no secret in an environment variable', () => {
    for (const { name } of secretSettings)
      assert.doesNotMatch(compose, new RegExp(`^ +${name}:`, 'm'));
  });
});
