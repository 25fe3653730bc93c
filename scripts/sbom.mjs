/**
 * The packages of the program as CycloneDX JSON, out of the lock file: `node scripts/sbom.mjs` lists
 * those that every installation has, `--pg` those of the driver for PostgreSQL too, which the image
 * and the executable have. (`npm sbom` leaves out what is a development dependency elsewhere in the
 * tree.) The same lock file makes the same bytes.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

/** @param {{ withPg?: boolean }} [options] */
export function createSbom({ withPg = false } = {}) {
  const program = lock.packages[''];
  const roots = [...Object.keys(program.dependencies), ...(withPg ? ['pg'] : [])];
  const found = new Map();
  const add = (name, from) => {
    const path = pathOf(name, from);
    if (path === undefined || found.has(path)) return;
    found.set(path, lock.packages[path]);
    for (const next of Object.keys(dependenciesOf(path))) add(next, path);
  };
  for (const name of roots) add(name, '');
  const paths = [...found.keys()].toSorted((a, b) => (a < b ? -1 : 1));
  const main = toReference(program.name, program.version);
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: toComponent('application', program.name, program) },
    components: paths.map((path) => toComponent('library', nameOf(path), found.get(path))),
    dependencies: [
      { ref: main, dependsOn: roots.map((name) => referenceOf(pathOf(name, ''))) },
      ...paths.map((path) => ({
        ref: referenceOf(path),
        dependsOn: Object.keys(dependenciesOf(path))
          .map((name) => pathOf(name, path))
          .filter((next) => next !== undefined)
          .map(referenceOf),
      })),
    ],
  };
}

function dependenciesOf(path) {
  const { dependencies, optionalDependencies } = lock.packages[path];
  return { ...dependencies, ...optionalDependencies };
}

/** As Node finds it: in the node_modules of the package itself, or of a folder above. */
function pathOf(name, from) {
  for (
    let folder = from;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))
  ) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (lock.packages[path] !== undefined) return path;
    if (folder === '') return undefined;
  }
}

function nameOf(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function referenceOf(path) {
  return toReference(nameOf(path), lock.packages[path].version);
}

/** A package URL: the `@` of a scope is written as %40. */
function toReference(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function toComponent(type, name, { version, license, integrity, resolved }) {
  const reference = toReference(name, version);
  return {
    type,
    'bom-ref': reference,
    name,
    version,
    licenses: [{ license: { id: license ?? findLicense(name) } }],
    purl: reference,
    ...(integrity && { hashes: [toHash(integrity)] }),
    ...(resolved && { externalReferences: [{ type: 'distribution', url: resolved }] }),
  };
}

/** The lock file leaves out what two packages state in a way that npm does not know any more. */
function findLicense(name) {
  const file = join(root, 'node_modules', name, 'package.json');
  return JSON.parse(readFileSync(file, 'utf8')).licenses[0].type;
}

/** The lock file has sha512 in base64, CycloneDX wants hexadecimal. */
function toHash(integrity) {
  const [algorithm = '', base64 = ''] = integrity.split('-');
  const content = Buffer.from(base64, 'base64').toString('hex');
  return { alg: algorithm.replace('sha', 'SHA-'), content };
}

if (process.argv[1] === import.meta.filename) {
  const sbom = createSbom({ withPg: process.argv.includes('--pg') });
  console.log(JSON.stringify(sbom, undefined, 2));
}
