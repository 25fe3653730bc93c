/** The proxies of deploy/ as they are, with other ports, and systemd's own judgement of the units. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { findPort } from './support/postgres.ts';
import { startNode } from './support/program.ts';
import { projectFolder } from './support/source.ts';
import { until } from './support/until.ts';
import { createDirectory } from './support/uploads.ts';

const deploy = join(projectFolder, 'deploy');
const name = 'inkwell.example.org';

/** The program and its arguments, with all that it needs in the folder. */
interface Proxy {
  readonly program: string;
  readonly prepare: (at: Readonly<Record<'folder' | 'port' | 'node', string>>) => Promise<string[]>;
}

/** Replaces each text, which must be there. */
function replaceAll(text: string, pairs: readonly (readonly [string, string])[]): string {
  return pairs.reduce((before, [from, to]) => {
    assert.ok(before.includes(from), from);
    return before.replaceAll(from, to);
  }, text);
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: '/usr/sbin/nginx',
    async prepare({ folder, port, node }) {
      const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', 'privkey.pem', '-subj', '/CN=a'];
      spawnSync('openssl', ['req', '-x509', ...key, '-out', 'fullchain.pem'], { cwd: folder });
      const site = replaceAll(await readFile(join(deploy, 'nginx.conf'), 'utf8'), [
        [':443 ', `:${port} `],
        ['listen 443 ', `listen ${port} `],
        ['80;', `${await findPort()};`],
        ['127.0.0.1:80', `127.0.0.1:${node}; #`],
        ['/etc/ssl/inkwell', folder],
        ['/var/log/nginx', folder],
      ]);
      await writeFile(join(folder, 'site.conf'), site);
      const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (one) => `${one}_temp_path ${folder}/${one};`,
      );
      const user = process.getuid?.() === 0 ? 'user root;' : '';
      const main = `${user} daemon off; pid ${folder}/pid; error_log stderr; events {}
        http { ${places.join('\n')} include ${folder}/site.conf; }`;
      await writeFile(join(folder, 'nginx.conf'), main);
      return ['-p', folder, '-c', join(folder, 'nginx.conf')];
    },
  },
  Caddy: {
    program: '/usr/bin/caddy',
    async prepare({ folder, port, node }) {
      const site = replaceAll(await readFile(join(deploy, 'Caddyfile'), 'utf8'), [
        ['{$DOMAIN:localhost}', `https://${name}:${port}`],
        ['node1:8080 node2:8080 node3:8080', `127.0.0.1:${node}`],
      ]);
      const config = join(folder, 'Caddyfile');
      const options =
        '{\n admin off\n auto_https disable_redirects\n local_certs\n skip_install_trust\n}\n';
      await writeFile(config, options + site);
      return ['run', '--config', config, '--adapter', 'caddyfile'];
    },
  },
};

/** What a client may forge, and where it comes from. */
const forged = { 'X-Forwarded-For': '192.0.2.66', Forwarded: 'for=192.0.2.66' };
const localAddress = '127.0.0.2';

const json = { 'Content-Type': 'application/json', ...forged };
const tls = { host: '127.0.0.1', servername: name, rejectUnauthorized: false };

/** The proxy before a node. */
async function startProxy(t: TestContext, { program, prepare }: Proxy) {
  const env = { TRUSTED_PROXIES: '127.0.0.1', PUBLIC_URL: `https://${name}` };
  const node = await startNode(t, env);
  const port = String(await findPort());
  const folder = await createDirectory(t);
  const args = await prepare({ folder, port, node: new URL(node.url).port });
  const { PATH } = process.env;
  const child = spawn(program, args, { env: { PATH, HOME: folder }, stdio: 'ignore' });
  const gone = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGTERM');
    await gone;
  });
  const ask = async (target: string, headers = {}, body?: string | Buffer) => {
    const [method, path] = target.split(' ');
    const all: OutgoingHttpHeaders = { Host: name, ...headers };
    const options = { ...tls, port, localAddress, agent: false, method, path, headers: all };
    const asked = request(options).end(body);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    return response;
  };
  const answers = async (): Promise<boolean> => (await ask('GET /hello')).statusCode === 200;
  await until('an answer', () => answers().catch(() => false));
  return { node, port, ask };
}

for (const [what, proxy] of Object.entries(proxies)) {
  const isMissing = spawnSync(proxy.program, ['version']).error !== undefined;
  suite(`${what} of deploy/`, { skip: isMissing && `there is no ${what} on this machine` }, () => {
    test('passes on requests and files, tags that hold, and the address of the client', async (t) => {
      const { node, ask } = await startProxy(t, proxy);
      const text = JSON.stringify({ title: 'a', content: 'x'.repeat(5_000) });
      const made = await ask('POST /posts', json, text);
      assert.equal(made.statusCode, 201);
      const path = made.headers.location ?? '';
      await until('the line of the change', async () =>
        node.logged.some(({ event, client }) => event === 'change' && client === localAddress),
      );
      const found = await ask(`GET ${path}`, { 'Accept-Encoding': 'gzip' });
      assert.equal(found.headers['content-encoding'], 'gzip');
      const put = async (tag?: string) =>
        (await ask(`PUT ${path}`, { ...json, 'If-Match': tag }, text)).statusCode;
      assert.equal(await put('"stale"'), 412);
      assert.equal(await put(found.headers.etag), 204);
      const head = '--b\r\nContent-Disposition: form-data; name="part"; filename="a"\r\n\r\n';
      const form = { 'Content-Type': 'multipart/form-data; boundary=b' };
      const body = Buffer.from(`${head}${'x'.repeat(3_000_000)}\r\n--b--`);
      assert.equal((await ask('POST /api/multiparts/simple', form, body)).statusCode, 200);
      const range = await ask('GET /files/a', { Range: 'bytes=0-9' });
      assert.deepEqual([range.statusCode, (await buffer(range)).length], [206, 10]);
    });

    test('passes on sockets and event streams as they come', async (t) => {
      const { port, ask } = await startProxy(t, proxy);
      const query = 'subscription { commentAdded { content } }';
      const events = { ...json, Accept: 'text/event-stream' };
      const stream = await ask('POST /graphql', events, JSON.stringify({ query }));
      const socket = new WebSocket(`wss://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
        headers: { Host: name, Origin: `https://${name}` },
        ...tls,
      });
      t.after(() => socket.terminate());
      await once(socket, 'open');
      let received = '';
      socket.on('message', (data: Buffer) => (received += data.toString()));
      socket.send('{"type":"connection_init"}');
      for (const asked of [query, '{ __typename }']) {
        socket.send(JSON.stringify({ id: asked, type: 'subscribe', payload: { query: asked } }));
      }
      // Operations of a socket start in their order.
      await until('the later result', async () => received.includes('"Query"'));
      const made = await ask('POST /posts', json, '{"title":"a","content":"b"}');
      await ask(`POST ${made.headers.location}/comments`, json, '{"content":"seen"}');
      await until('the comment on the socket', async () => received.includes('seen'));
      let streamed = '';
      stream.on('data', (data: Buffer) => (streamed += data.toString()));
      await until('the comment in the stream', async () => streamed.includes('seen'));
      stream.destroy();
    });
  });
}

const noSystemd = spawnSync('systemd-analyze', ['--version']).status !== 0;

test(
  'systemd finds no fault in the units',
  { skip: noSystemd && 'there is no systemd-analyze on this machine' },
  async (t) => {
    const folder = await createDirectory(t);
    const units = readdirSync(deploy).filter((file) => /\.(?:service|timer)$/.test(file));
    for (const unit of units) {
      const text = await readFile(join(deploy, unit), 'utf8');
      await writeFile(join(folder, unit), text.replaceAll('/usr/bin/node', process.execPath));
    }
    const paths = units.map((unit) => join(folder, unit.replace('@', '@8081')));
    const template = await readFile(join(folder, 'inkwell@.service'), 'utf8');
    await writeFile(join(folder, 'inkwell@8081.service'), template);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...paths]);
    assert.deepEqual([status, String(stderr)], [0, '']);
  },
);
