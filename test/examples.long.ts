/** The examples, as their README starts them; examples-blog and examples-page have the blog. */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cp, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { startLossyProxy } from './support/lossy-proxy.ts';
import { startServer } from './support/server.ts';
import { projectFolder } from './support/source.ts';
import { readClaims } from './support/tokens.ts';
import { noShell } from './support/shell.ts';
import { until } from './support/until.ts';
import { createDirectory } from './support/uploads.ts';

// With `members` a new post, which is a draft, is read and written with the token of its author alone.
for (const mode of ['none', 'members']) {
  test(`the script sees the comment that it adds: ${mode}`, { skip: noShell }, async (context) => {
    const server = await startServer(context, { env: { REQUIRE_AUTH: mode } });
    const script = join(projectFolder, 'examples', 'shell', 'comments.sh');
    const { stdout, stderr } = await promisify(execFile)('bash', [script, server.url]);
    assert.match(stdout, /^post: \/posts\/[0-9a-f-]{36}\ncomment: \{"data".*Seen by the script/);
    assert.equal(stderr, '');
  });

  test(`a post is created, read and changed with fetch: ${mode}`, async (context) => {
    const server = await startServer(context, { env: { REQUIRE_AUTH: mode } });
    const program = join(projectFolder, 'examples', 'clients', 'post.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [program, server.url]);
    assert.equal(stdout, '204\n');
  });
}

test('the clients refresh their token, and log in again when the session has ended', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_000 });
  const server = await startServer(t, { env: { SESSION_SECONDS_MAX: '100' } });
  const { argv } = process;
  t.after(() => (process.argv = argv));
  process.argv = [...argv.slice(0, 2), server.url];
  const program = join(projectFolder, 'examples', 'clients', 'login.mjs');
  const { getToken, fetchAsUser } = (await import(pathToFileURL(program).href)) as {
    readonly getToken: () => Promise<string>;
    readonly fetchAsUser: typeof fetch;
  };
  const seen: unknown[] = [];
  for (const seconds of [0, 29, 2, 50, 40]) {
    t.mock.timers.tick(seconds * 1000);
    const { auth_time: login, iat } = readClaims(await getToken());
    seen.push([login, iat].map((time) => Number(time) - 1_800_000_000));
    assert.equal((await fetchAsUser(`${server.url}/profile`)).status, 200, `${seconds}`);
  }
  // Made at the start, after 31 and 81 seconds, and by another login after 121.
  assert.equal(seen.join(' '), '0,0 0,0 0,31 0,81 121,121');
});

test('the client in TypeScript is typed by the server, compiles and runs', async (context) => {
  const server = await startServer(context);
  const cwd = await createDirectory(context);
  await cp(join(projectFolder, 'examples', 'typescript'), cwd, { recursive: true });
  await symlink(join(projectFolder, 'node_modules'), join(cwd, 'node_modules'));
  const run = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, args, { cwd })).stdout;

  await run('generate.mjs', server.url);
  const tsc = join(projectFolder, 'node_modules', 'typescript', 'bin', 'tsc');
  assert.equal(await run(tsc, '-p', '.'), '');
  const printed = await run(join('generated', 'client.js'), server.url);
  assert.match(printed, /^TYPED \[ 'No cast needed\.' \]\nHELLO/);
});

const lines = 30;
const cutMilliseconds = 300;
// Node 20 has them behind a flag.
const flags = typeof WebSocket === 'undefined' ? ['--experimental-websocket'] : [];

interface Listed {
  readonly id: string;
  readonly content: string;
}

/**
 * Behind a proxy that loses requests and responses and cuts all connections, some without a word: one
 * comment for each line that is typed, and none missing or doubled on the screen.
 */
for (const name of ['apollo.mjs', 'urql.mjs']) {
  test(`${name} adds each line once, and misses no comment`, async (t) => {
    const env = { LOG_REQUESTS: 'all', REQUIRE_AUTH: 'writes', TOKEN_TTL_SECONDS: '3' };
    const server = await startServer(t, { env });
    const proxy = await startLossyProxy(t, () => [server.port], 3);
    const program = join(projectFolder, 'examples', 'clients', name);
    const url = `http://127.0.0.1:${proxy.port}`;
    const child = spawn(process.execPath, [...flags, program, url]);
    t.after(() => child.kill('SIGKILL'));
    let [output, errors] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const screen = (): readonly string[] => output.split('\n').slice(0, -1);
    await until('the comments that there are', () => screen().length > 0);

    const [post] = (await (await server.fetch('/posts')).json()) as readonly Listed[];
    const typed = Array.from({ length: lines }, (_, at) => `line ${at}`);
    for (const line of typed) {
      child.stdin.write(`${line}\n`);
      await pause(cutMilliseconds / 2);
      const at = Number(line.slice(5));
      if (at % 10 === 5) proxy.swallow();
      else if (at % 2 === 0) proxy.cut();
    }
    const isShown = (): boolean => typed.every((line) => screen().includes(line));
    await until(`all lines on the screen: ${errors}`, isShown, 120);
    const stored = await server.fetch(`/posts/${post?.id}/comments`);
    const comments = ((await stored.json()) as readonly Listed[]).map(({ content }) => content);
    const added = comments.filter((content) => content.startsWith('line '));
    assert.deepEqual(added.toSorted(), typed.toSorted());
    assert.deepEqual(screen(), comments);

    const refreshed = server.logged.some((line) => line['route'] === '/auth/refresh');
    assert.ok(refreshed && proxy.counts.unanswered > 0, JSON.stringify(proxy.counts));
  });
}
