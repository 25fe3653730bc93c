/**
 * The clients of GraphQL in examples/, behind a proxy that loses requests and responses and cuts all
 * connections, some without a word: one comment for each line that is typed, and none missing or
 * doubled on the screen.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startLossyProxy } from './support/lossy-proxy.ts';
import { startServer } from './support/server.ts';
import { projectFolder } from './support/source.ts';
import { until } from './support/until.ts';

const lines = 30;
const cutMilliseconds = 300;
// Node 20 has them behind a flag.
const flags = typeof WebSocket === 'undefined' ? ['--experimental-websocket'] : [];

interface Listed {
  readonly id: string;
  readonly content: string;
}

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
    const path = `/posts/${post?.id}/comments`;
    const stored = async (): Promise<readonly string[]> => {
      const comments = (await (await server.fetch(path)).json()) as readonly Listed[];
      return comments.map(({ content }) => content);
    };
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
    const comments = await stored();
    const added = comments.filter((content) => content.startsWith('line '));
    assert.deepEqual(added.toSorted(), typed.toSorted());
    assert.deepEqual(screen(), comments);

    const count = (route: string): number =>
      server.logged.filter(({ route: logged, status }) => logged === route && status === 200)
        .length;
    t.diagnostic(
      `${JSON.stringify(proxy.counts)}, ${count('/auth/login')} logins, ` +
        `${count('/auth/refresh')} refreshed tokens`,
    );
    assert.ok(count('/auth/refresh') > 0 && proxy.counts.unanswered > 0);
  });
}
