/** What other tools make of the API reference: a validator, and the types of a client. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import openapiTypes, { type OpenAPI3 } from 'openapi-typescript';
import { document } from '../support/reference.ts';
import { projectFolder } from '../support/source.ts';

const client = `
import type { components, operations, paths } from './api.js';

type Post = components['schemas']['Post'];
type Code = components['schemas']['Problem']['code'];
type Patch = NonNullable<paths['/api/articles/{id}']['patch']['requestBody']>['content'];

export async function write(url: string): Promise<Post[]> {
  const body: components['schemas']['PostInput'] = {
    title: 'Typed',
    content: 'By the reference.',
  };
  await fetch(url + '/posts', { method: 'POST', body: JSON.stringify(body) });
  const answer = await fetch(url + '/posts');
  type Posts = operations['listPosts']['responses'][200]['content']['application/json'];
  const posts: Posts = await answer.json();
  return posts.filter(({ status, createdAt }) => status === 'DRAFT' && createdAt.length > 0);
}

export const notFound: Code = 'not_found';
export const merge: Patch['application/merge-patch+json'] = { tags: [] };
// @ts-expect-error There is no such code.
export const unknown: Code = 'lost';
// @ts-expect-error A comment needs its content.
export const comment: components['schemas']['CommentInput'] = { text: 'x' };
// @ts-expect-error A post has no such status.
export const isOld = (post: Post): boolean => post.status === 'OLD';
// @ts-expect-error This path has no such method.
export type None = paths['/hello']['put'];
`;

test('a client that is typed by the reference compiles, and a wrong one does not', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-types-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const types = await openapiTypes(structuredClone(document) as unknown as OpenAPI3);
  await writeFile(join(folder, 'api.ts'), types);
  await writeFile(join(folder, 'client.ts'), client);
  const tsc = join(projectFolder, 'node_modules', '.bin', 'tsc');
  const flags = '--noEmit --strict --target es2022 --module nodenext --lib es2022,dom'.split(' ');
  const said = await new Promise<string>((resolve) => {
    const options = { cwd: folder };
    execFile(tsc, [...flags, 'client.ts'], options, (_error, out, err) => resolve(out + err));
  });
  assert.equal(said, '');
});

test('the reference is OpenAPI 3.1 to a validator', async () => {
  const validator = new Validator();
  assert.deepEqual(await validator.validate({ ...structuredClone(document) }), { valid: true });
  assert.equal(validator.version, '3.1');
  const broken = { ...structuredClone(document), paths: { posts: {} } };
  assert.equal((await validator.validate(broken)).valid, false);
});
