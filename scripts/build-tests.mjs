/**
 * Build step: makes dist-test/ out of test/, and dist-test/groups/, what `npm test` runs. Types are
 * only removed here; `npm run lint` checks them. A process of its own for each test file spends
 * more on its start, and on code that is not compiled to machine code yet, than most files on
 * their tests: so all files share a few processes, which run at the same time.
 * `npm run test:long` starts one process for each file.
 */

import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** As many as `npm test` runs at a time: two processors have work then while some wait. */
const groupCount = 4;

/**
 * Rough seconds of the files that take longer than a second: the sums of the groups are balanced by
 * them, and the longest files come first, so that no group runs on for long behind the others.
 */
const secondsOf = new Map(
  Object.entries({
    'store/postgres': 16,
    'store/durable-uploads': 13,
    server: 7,
    'handlers/conditional': 4,
    'handlers/reference': 7,
    'commands/accounts': 7,
    'handlers/health': 5,
    'store/database-memory': 5,
    'store/postgres-tls': 4,
    'store/plans': 4,
    limits: 4,
    'http/order': 4,
    'store/postgres-pool': 6,
    'readme-tour': 3,
    'http/json-suites': 3,
    'records/list-response': 3,
    'handlers/graphql-pages': 3,
    'handlers/files-limits': 3,
    'graphql/ws-limits': 7,
    'graphql/limits': 3,
    fuzz: 3,
    'commands/store': 3,
    model: 2,
    'http/waiting-responses': 2,
    'http/small-pieces': 2,
    'http/request-log': 2,
    'http/metrics': 2,
    'http/limits': 5,
    'handlers/single-files': 2,
    'handlers/graphql-upload': 2,
    'handlers/graphql-sockets': 2,
    'handlers/graphql': 2,
    'handlers/cached-responses-histories': 2,
    'handlers/accounts': 2,
    'graphql/waiting-bytes': 2,
    'graphql/subscriptions-begin': 2,
  }),
);

const source = fileURLToPath(new URL('../test', import.meta.url));
const target = fileURLToPath(new URL('../dist-test', import.meta.url));

await rm(target, { recursive: true, force: true });
const all = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.ts'));
await build({
  entryPoints: all.map((name) => join(source, name)),
  outbase: source,
  outdir: target,
  format: 'esm',
});

const files = all.filter((name) => name.endsWith('.test.ts')).map((name) => name.slice(0, -3));
for (const name of secondsOf.keys()) {
  if (!files.includes(`${name}.test`)) throw new Error(`There is no test file ${name}.`);
}
const groups = Array.from({ length: groupCount }, () => ({ imports: '', seconds: 0 }));
const getSeconds = (name) => secondsOf.get(name.replace('.test', '')) ?? 0.5;
for (const name of files.toSorted().toSorted((a, b) => getSeconds(b) - getSeconds(a))) {
  const group = groups.reduce((least, one) => (one.seconds < least.seconds ? one : least));
  group.imports += `import '../${name}.js';\n`;
  group.seconds += getSeconds(name);
}
await mkdir(join(target, 'groups'));
for (const [at, { imports }] of groups.entries()) {
  await writeFile(join(target, 'groups', `${at + 1}.js`), imports);
}
