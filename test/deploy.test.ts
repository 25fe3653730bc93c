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
const caddy = read('deploy/Caddyfile');
const alerts = read('deploy/alerts.yaml');
const backup = read('deploy/inkwell-backup.service');
const { devDependencies, peerDependencies } = JSON.parse(read('package.json')) as Readonly<
  Record<'devDependencies' | 'peerDependencies', Readonly<Record<string, string>>>
>;
const { packages: locked } = JSON.parse(read('package-lock.json')) as {
  readonly packages: Record<string, { version?: string; link?: boolean; integrity?: string }>;
};

/** The first group of each match. */
const all = (text: string, pattern: RegExp): string[] =>
  Array.from(text.matchAll(pattern), ([, found = '']) => found);

/** What the files say and do not say. */
const words: readonly (readonly [what: string, texts: readonly string[], says: RegExp])[] = [
  ['installs by the lock', [dockerfile], /npm ci --omit=dev --ignore-scripts/],
  // Then the driver is a dependency like others, and the lock says which version.
  ['has the driver', [dockerfile], /npm pkg delete devDependencies\.pg peerDependenciesMeta /],
  // `npm ci` refuses what differs from the lock; other commands choose versions themselves.
  ['installs no other', [dockerfile], /^(?![^]*(?:\bnpm (?!ci |pkg |run build)|\bnpx\b|\bapk\b))/],
  ['does not run as root', [dockerfile], /^USER node$/m],
  ['asks for its health', [dockerfile], /CMD wget .*\/livez"$/m],
  ['has an address that no other container gets', [compose], /ipv4_address: 172\.28\.0\.2\n/],
  ['trusts that address', [compose], /TRUSTED_PROXIES: 172\.28\.0\.2\n/],
  ['gives others from another range', [compose], /ip_range: 172\.28\.0\.128\/25\n/],
  // Anybody chooses the Host of a request.
  ['redirects to its name', [nginx], /^ {4}return 308 https:\/\/\$server_name\$request_uri;$/m],
  ['redirects to no other', [nginx], /^(?![^]*return .*\$(?:http_)?host)/],
  // Beside Debian's default site a second default_server would keep nginx from starting.
  ['is no second default', [nginx], /^(?![^]*listen .*default_server)/],
  [
    'answers no other name',
    [nginx],
    /\{\n {2}listen 80;[^}]*ssl_reject_handshake on;\n {2}return 444;/,
  ],
  ["passes on no client's own Forwarded", [nginx], /proxy_set_header Forwarded '';/],
  ["passes on no client's own Forwarded", [caddy], /header_up -Forwarded\n/],
  ['protects posts', [compose, kubernetes, unit, instance], /REQUIRE_AUTH(?:=|: |, value: )owners/],
  ['has its port', [compose, kubernetes, unit, alerts], /^(?![^]*9090(?!, the port of))[^]*9464/],
  ['migrates first', [kubernetes], /initContainers:\n +- name: migrate\n.*\n +args: .*'migrate'\]/],
  ['backs up the database', [compose, kubernetes], /pg_dump --format=custom/],
  ['tells of a failed backup', [backup], /^OnFailure=inkwell-backup-failed\.service$/m],
  ['restarts without a limit', [unit, instance], /^StartLimitIntervalSec=0$/m],
];

describe('an example', () => {
  for (const [what, texts, says] of words) {
    it(what, () => {
      for (const text of texts) assert.match(text, says, text.slice(0, 80));
    });
  }
});

describe('the Dockerfile', () => {
  it('copies what is there and what .dockerignore lets in', () => {
    const allowed = read('.dockerignore').split('\n');
    const copied = all(dockerfile, /^COPY (?!--from)(.+) \S+$/gm).flatMap((one) => one.split(' '));
    assert.ok(copied.includes('src'));
    for (const path of copied) {
      assert.ok(existsSync(join(projectFolder, path)), path);
      assert.ok(allowed.includes(`!${path}`), path);
    }
  });

  it('installs what the lock has a hash of, with the version of the driver that is tested', () => {
    assert.deepEqual(Object.keys(peerDependencies), ['pg']);
    assert.equal(locked['node_modules/pg']?.version, devDependencies['pg']);
    const unpinned = Object.entries(locked)
      .filter(([path, { link, integrity }]) => /node_modules/.test(path) && !link && !integrity)
      .map(([path]) => path);
    assert.deepEqual(unpinned, []);
  });

  it('has the base image that SECURITY.md names, of a Node version that gets security fixes', () => {
    const [image = '', ...others] = new Set(all(dockerfile, /^FROM (\S+)/gm));
    assert.deepEqual(others, []);
    assert.ok(read('SECURITY.md').includes(`\`${image}\``), image);
    const [, major, minor] = /^node:(\d+)\.(\d+)\.\d+-alpine$/.exec(image) ?? [];
    assert.ok(read('SECURITY.md').includes(`security fixes**: ${major},`), image);
    assert.ok(Number(minor) >= 21, image);
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
    const images = all(`${dockerfile}\n${compose}`, /^\s*(?:FROM|image:) (\S+)/gm);
    assert.equal(images.length, 5);
    for (const image of images) assert.match(image, /^\w+:\d+\.\d+(?:\.\d+)?-alpine/);
  });

  it('set only settings that there are, and give no secret in an environment variable', () => {
    const names = Object.values<Setting<unknown>>(settings).map(({ name }) => name);
    const secrets = secretSettings.map(({ name }) => name);
    const [environment = ''] = all(compose, /^ {2}environment:\n((?: {4}.*\n)+)/gm);
    const set = [
      ...all(environment, /^ +([A-Z_]+):/gm),
      ...all(kubernetes, /^ +- \{ name: ([A-Z_]+), value/gm),
      ...all(`${unit}${instance}`, /^Environment=([A-Z_]+)=/gm),
      ...all(dockerfile, /(?<=^ENV .*)\b([A-Z_]+)=/gm),
    ];
    assert.ok(set.length > 8);
    const known = [...names, ...secrets.map((name) => `${name}_FILE`)];
    for (const name of set) assert.ok(known.includes(name), name);
    for (const name of secrets) assert.doesNotMatch(compose, new RegExp(`^ +${name}:`, 'm'), name);
  });

  it('keep idle connections for longer than the proxy does, and leave a node that hangs', () => {
    for (const text of [compose, kubernetes, unit, instance]) {
      const [seconds] = all(text, /KEEP_ALIVE_SECONDS(?:=|: '|, value: ')(\d+)/g);
      assert.ok(Number(seconds) >= 75, `${seconds}`);
    }
    for (const text of [nginx, caddy, kubernetes]) {
      const [seconds] = all(text, /(?:read_timeout|header_timeout|read-timeout:) '?(\d+)/g);
      // Sockets and event streams send something every 15 seconds.
      assert.ok(Number(seconds) > 15 && Number(seconds) <= 30, `${seconds}`);
    }
  });

  it('wait for a stop with its delay before they kill', () => {
    for (const [text, delay, grace] of [
      [compose, /DRAIN_DELAY_SECONDS: '(\d+)'/g, /stop_grace_period: (\d+)s/g],
      [kubernetes, /DRAIN_DELAY_SECONDS, value: '(\d+)'/g, /GracePeriodSeconds: (\d+)/g],
    ] as const) {
      assert.ok(Number(all(text, grace)[0]) > Number(all(text, delay)[0]) + 9);
    }
  });

  it('probe the admin port', () => {
    const probes = kubernetes.matchAll(/(\w+)Probe:\n +httpGet: \{ path: (\S+), port: (\w+) \}/g);
    const found = Array.from(probes, ([, ...probe]) => probe.join(' ')).join();
    assert.equal(found, 'readiness /readyz admin,liveness /livez admin,startup /livez admin');
  });

  it('limit the memory of each container', () => {
    assert.equal(all(compose, /^ {2}(postgres|backup|proxy):$/gm).length, 3);
    assert.equal(all(compose, /^ {2,4}(mem_limit): \d+[mg]$/gm).length, 4);
  });

  it('alert on and show metrics that there are', () => {
    const known = read('docs/production.md');
    const { panels } = JSON.parse(read('deploy/grafana.json')) as {
      readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
    };
    const shown = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join(' ');
    for (const [text, least] of [
      [alerts, 10],
      [shown, 15],
    ] as const) {
      const used = new Set(all(text, /\b((?:inkwell|process)_\w+?)(?=_count\b|_bucket\b|\b)/g));
      assert.ok(used.size >= least, text);
      for (const name of used) assert.ok(known.includes(`\`${name}\``), name);
    }
  });

  it('give each alert a severity and a section of the runbook', () => {
    const rules = all(alerts, /- alert: (\w+)/g);
    assert.deepEqual(all(read('docs/runbook.md'), /^## (\w+)$/gm), rules);
    const links = all(alerts, /runbook_url: .*#(\w+)$/gm);
    assert.equal(links.join(), rules.join().toLowerCase());
    assert.equal(all(alerts, /severity: (critical|warning|info) /g).length, rules.length);
  });

  it('alert in an incident, and not without one', { skip: noPromtool }, () => {
    const cwd = join(projectFolder, 'deploy');
    const args = ['test', 'rules', 'alerts.test.yaml'];
    const { status, stdout } = spawnSync('promtool', args, { cwd });
    assert.equal(status, 0, String(stdout));
  });
});
