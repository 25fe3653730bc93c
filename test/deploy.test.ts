/** What the examples in deploy/ say about the rest of the repository holds. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { secretSettings, settings } from '../dist/config.js';
import type { Setting } from '../dist/settings.js';
import { projectFolder } from './support/source.ts';

const noPromtool =
  spawnSync('promtool', ['--version']).status !== 0 && 'there is no promtool on this machine';

const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');
const dockerfile = read('deploy/Dockerfile');
const compose = read('deploy/compose.yaml');
const kubernetes = read('deploy/kubernetes.yaml');
const unit = read('deploy/inkwell.service');
const instance = read('deploy/inkwell@.service');
const nginx = read('deploy/nginx.conf');
const backup = read('deploy/inkwell-backup.service');
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

describe('the watch', () => {
  const [, line = ''] =
    /^ExecStart=\/bin\/sh -c '(.+)'$/m.exec(read('deploy/inkwell-watch.service')) ?? [];

  it('asks the admin port of the unit', () => {
    const [, port = ''] = /ADMIN_PORT=(\d+)/.exec(unit) ?? [];
    assert.ok(line.includes(`http://127.0.0.1:${port}/livez;`), line);
  });

  // Exit codes of curl: no answer in time; an answer; refused; a connection that was cut.
  for (const [code, isEnded] of [
    [28, true],
    [0, false],
    [7, false],
    [56, false],
  ] as const) {
    it(`${isEnded ? 'ends' : 'leaves alone'} a node for which curl exits with ${code}`, () => {
      const { status, stdout } = watch(`curl() { return ${code}; }`);
      assert.equal(status, 0);
      assert.equal(/^systemctl kill --signal=KILL inkwell.service$/m.test(stdout), isEnded);
    });
  }

  it('fails without curl', () => {
    assert.equal(watch('').status, 1);
  });

  function watch(curl: string): { status: number | null; stdout: string } {
    const program = line
      .replaceAll('$$', '$')
      .replace('/usr/bin/curl', curl ? 'curl' : '/none/curl');
    const script = `${curl}\nsystemctl() { echo systemctl "$@"; }\n${program}`;
    return spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8' });
  }
});

describe('the examples', () => {
  it('name exact versions of images', () => {
    const images = [...`${dockerfile}\n${compose}`.matchAll(/^\s*(?:FROM|image:) (\S+)/gm)];
    assert.equal(images.length, 5);
    for (const [, image] of images)
      assert.match(image ?? '', /^\w+:\d+\.\d+(?:\.\d+)?-alpine/, image);
  });

  it('set only settings that there are', () => {
    const [, environment = ''] = /^ {2}environment:\n((?: {4}.*\n)+)/m.exec(compose) ?? [];
    const set = [
      ...[...environment.matchAll(/^ +([A-Z_]+):/gm)].map(([, name]) => name),
      ...[...kubernetes.matchAll(/^ +- \{ name: ([A-Z_]+), value/gm)].map(([, name]) => name),
      ...[...`${unit}${instance}`.matchAll(/^Environment=([A-Z_]+)=/gm)].map(([, name]) => name),
      ...[...dockerfile.matchAll(/(?<=^ENV .*)\b([A-Z_]+)=/gm)].map(([, name]) => name),
    ];
    assert.ok(set.length > 8);
    for (const name of set) assert.ok(names.has(name ?? ''), name);
  });

  it('keep idle connections for longer than the proxy does', () => {
    const texts = [compose, kubernetes, unit, instance];
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

  it('redirect to their own name, and answer no other', () => {
    // Anybody chooses the Host of a request.
    assert.match(nginx, /^ {4}return 308 https:\/\/\$server_name\$request_uri;$/m);
    assert.doesNotMatch(nginx, /return .*\$(?:http_)?host/);
    // Beside Debian's default site a second default_server would keep nginx from starting.
    assert.doesNotMatch(nginx, /listen .*default_server/);
    assert.match(nginx, /server \{\n {2}listen 80;[^}]*ssl_reject_handshake on;\n {2}return 444;/);
  });

  it("pass on no client's own Forwarded, and leave a node that hangs", () => {
    assert.match(nginx, /proxy_set_header Forwarded '';/);
    const caddy = read('deploy/Caddyfile');
    assert.match(caddy, /header_up -Forwarded\n/);
    for (const text of [nginx, caddy, kubernetes]) {
      const [, seconds] = /(?:read_timeout|header_timeout|read-timeout:) '?(\d+)/.exec(text) ?? [];
      // Sockets and event streams send something every 15 seconds.
      assert.ok(Number(seconds) > 15 && Number(seconds) <= 30, `${seconds}`);
    }
  });

  it('protect the posts and drafts of each author', () => {
    for (const text of [compose, kubernetes, unit, instance])
      assert.match(text, /REQUIRE_AUTH(?:=|: |, value: )owners/);
  });

  it('probe the admin port, which is not that of Prometheus', () => {
    const probes = [
      ...kubernetes.matchAll(/(\w+)Probe:\n +httpGet: \{ path: (\S+), port: (\w+) \}/g),
    ];
    assert.deepEqual(
      probes.map(([, kind, path, port]) => [kind, path, port]),
      [
        ['readiness', '/readyz', 'admin'],
        ['liveness', '/livez', 'admin'],
        ['startup', '/livez', 'admin'],
      ],
    );
    for (const text of [compose, kubernetes, unit, read('deploy/alerts.yaml')]) {
      assert.match(text, /9464/, text.slice(0, 80));
      assert.doesNotMatch(text, /9090(?!, the port of)/, text.slice(0, 80));
    }
    assert.match(dockerfile, /CMD wget .*\/livez"$/m);
  });

  it('migrate before a node starts, and back up each database', () => {
    assert.match(kubernetes, /initContainers:\n +- name: migrate\n.*\n +args: .*'migrate'\]/);
    for (const text of [compose, kubernetes])
      assert.match(text, /pg_dump --format=custom/, text.slice(0, 80));
    assert.match(backup, /^OnFailure=inkwell-backup-failed\.service$/m);
    assert.ok(existsSync(join(projectFolder, 'deploy/inkwell-backup-failed.service')));
  });

  it('limit the memory of each container, and the restarts of no service', () => {
    const services = compose.match(/^ {2}(?:postgres|backup|proxy):$/gm)?.length;
    assert.equal(services, 3);
    assert.equal(compose.match(/^ {2,4}mem_limit: \d+[mg]$/gm)?.length, 4);
    for (const text of [unit, instance])
      assert.match(text, /^StartLimitIntervalSec=0$/m, text.slice(0, 80));
  });

  it('alert on metrics that there are', () => {
    const alerts = read('deploy/alerts.yaml').matchAll(/\binkwell_\w+/g);
    const used = new Set(Array.from(alerts, ([name]) => name.replace(/_(?:count|bucket)$/, '')));
    assert.ok(used.size > 9);
    for (const name of used) assert.ok(read('docs/production.md').includes(`\`${name}\``), name);
  });

  it('give each alert a severity and a section of the runbook', () => {
    const alerts = read('deploy/alerts.yaml');
    const rules = Array.from(alerts.matchAll(/- alert: (\w+)/g), ([, name = '']) => name);
    const headings = Array.from(
      read('docs/runbook.md').matchAll(/^## (\w+)$/gm),
      ([, name]) => name,
    );
    assert.deepEqual(headings, rules);
    const links = Array.from(alerts.matchAll(/runbook_url: .*#(\w+)$/gm), ([, name]) => name);
    assert.deepEqual(
      links,
      rules.map((name) => name.toLowerCase()),
    );
    assert.equal(alerts.match(/severity: (?:critical|warning|info) /g)?.length, rules.length);
  });

  it('show on the dashboard what /metrics has', () => {
    const { panels } = JSON.parse(read('deploy/grafana.json')) as {
      readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
    };
    const text = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join(' ');
    const used = new Set(text.match(/\b(?:inkwell|process)_\w+?(?=_count\b|_bucket\b|\b)/g));
    assert.ok(used.size > 14);
    for (const name of used) assert.ok(read('docs/production.md').includes(`\`${name}\``), name);
  });

  it('alert in an incident, and not without one', { skip: noPromtool }, () => {
    const cwd = join(projectFolder, 'deploy');
    const { status, stdout } = spawnSync('promtool', ['test', 'rules', 'alerts.test.yaml'], {
      cwd,
    });
    assert.equal(status, 0, String(stdout));
  });

  it('give no secret in an environment variable', () => {
    for (const { name } of secretSettings)
      assert.doesNotMatch(compose, new RegExp(`^ +${name}:`, 'm'), name);
  });
});
