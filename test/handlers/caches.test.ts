/**
 * Caches between the service and its clients (R6b): an nginx that keeps what is 200 for ten seconds,
 * whatever it is, and a Varnish as it comes, which keeps what says nothing for two minutes.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { type Headers, openBlog, strangers } from '../support/drafts.ts';
import { startServer } from '../support/server.ts';
import { inMemory } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { createDirectory } from '../support/uploads.ts';

type Get = (path: string, headers?: Headers) => Promise<string>;

const socketName = 'cache.sock';

interface Cache {
  readonly program: string;
  /** Starts in the folder, listens to `socketName` there, and asks the port. */
  readonly start: (folder: string, port: number) => Promise<ChildProcess>;
}

const nginx: Cache = {
  program: '/usr/sbin/nginx',
  async start(folder, port) {
    const names = ['client_body', 'fastcgi', 'uwsgi', 'scgi'];
    const temporary = names.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n');
    const path = join(folder, 'nginx.conf');
    const text = `${process.getuid?.() === 0 ? 'user root;' : ''} daemon off; pid ${folder}/pid; error_log stderr;
events {}
http {
  access_log off; ${temporary} proxy_temp_path ${folder}/temp;
  proxy_cache_path ${folder}/cache keys_zone=all:1m;
  server {
    listen unix:${folder}/${socketName};
    location / {
      proxy_pass http://127.0.0.1:${port};
      proxy_cache all;
      proxy_cache_valid 200 10s;
      proxy_cache_valid any 10s;
    }
  }
}`;
    await writeFile(path, text);
    return spawn(nginx.program, ['-p', folder, '-c', path]);
  },
};

const varnish: Cache = {
  program: '/usr/sbin/varnishd',
  async start(folder, port) {
    const listening = `-a${join(folder, socketName)},mode=666`;
    const fixed = ['-F', `-n${join(folder, 'varnish')}`, '-smalloc,8m'];
    return spawn(varnish.program, [...fixed, listening, `-b127.0.0.1:${port}`]);
  },
};

/** Starts a cache in front of a server. */
async function startCache(t: TestContext, { start }: Cache, port: number): Promise<Get> {
  const folder = await createDirectory(t);
  const child = await start(folder, port);
  let said = '';
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
  t.after(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, 'exit');
  });
  const socketPath = join(folder, socketName);
  const get: Get = async (path, headers = {}) => {
    const asked = request({ socketPath, path, headers: { Host: 'a', ...headers } }).end();
    const [response] = (await once(asked, 'response')) as [AsyncIterable<Buffer>];
    const pieces: Buffer[] = [];
    for await (const piece of response) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  };
  const isReady = async (): Promise<boolean> => {
    assert.equal(child.exitCode, null, said);
    return existsSync(socketPath) && (await get('/hello').catch(() => '')).startsWith('Hello');
  };
  await until('the cache to be there', isReady);
  return get;
}

const toQuery = (query: string): string => `/graphql?query=${encodeURIComponent(query)}`;
/** What the author has written, in either door. */
const isDraft = /"title":"a"|of a draft/i;

const titles = toQuery('{ allPosts { title } }');
const drafts = toQuery('{ allPosts(status: DRAFT) { title comments { content } } }');

for (const [name, cache] of Object.entries({ nginx, varnish })) {
  const missing = spawnSync(cache.program, ['-V'], { stdio: 'ignore' }).status !== 0;
  suite(`a cache of ${name}`, { skip: missing && `there is no ${name} on this machine` }, () => {
    for (const mode of ['owners', 'members']) {
      test(`gives no stranger what an author has read, in ${mode}`, async (t) => {
        const { one, people, post, comment } = await openBlog(t, inMemory, mode);
        const get = await startCache(t, cache, one.port);
        const id = await post('DRAFT');
        const remark = await comment(id, 'of a draft');
        const lists = ['/posts?status=DRAFT', `/posts/${id}/comments`, drafts];
        for (const path of [...lists, `/posts/${id}`, `/comments/${remark}`]) {
          // As often as a cache may need to think it worth keeping.
          for (const text of [await get(path, people.author), await get(path, people.author)]) {
            assert.match(text, isDraft, path);
          }
          for (const person of strangers) {
            assert.doesNotMatch(await get(path, people[person]), isDraft, path);
          }
        }
        const profile = await get('/profile', people.author);
        assert.match(profile, /"username":"author"/);
        assert.doesNotMatch(await get('/profile', people.other), /"username":"author"/);
      });
    }

    test('gives nobody what was so before', async (t) => {
      const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
      const get = await startCache(t, cache, server.port);
      const query = '{ allPosts { title } }';
      const sha256Hash = createHash('sha256').update(query).digest('hex');
      const extensions = { persistedQuery: { version: 1, sha256Hash } };
      const byHash = `/graphql?extensions=${encodeURIComponent(JSON.stringify(extensions))}`;
      const paths = ['/posts', '/api/todos', '/api/articles', '/api/articles/77', '/files'];
      paths.push('/api/multiparts', titles, byHash);
      const before = new Map<string, string>();
      for (const path of paths) before.set(path, await get(path));
      const post = await server.make('/posts', { title: 'New', content: 'text' });
      await server.make('/api/todos', { title: 'New' });
      await server.make('/api/articles', { id: 77, title: 'New' });
      await server.send('POST', '/graphql', { query, extensions });
      const form = new FormData();
      form.append('part', new Blob(['New']), 'New.txt');
      await server.fetch('/api/multiparts/list', { method: 'POST', body: form });
      for (const path of paths) {
        const after = await get(path);
        assert.notEqual(after, before.get(path), path);
        assert.match(after, /new/i, path);
      }
      assert.match(await get(post), /"New"/);
      await server.send('PUT', post, { title: 'Newer', content: 'text' });
      assert.match(await get(post), /"Newer"/);
      await server.fetch(post, { method: 'DELETE' });
      assert.match(await get(post), /not_found/);
    });
  });
}
