import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test, type TestContext } from 'node:test';
import { runProgram } from '../support/program.ts';

async function start(context: TestContext): Promise<{ main: string; read: () => Promise<string> }> {
  const program = await runProgram(context, { env: { ADMIN_PORT: '0' } });
  const { line, port } = await program.listening();
  const { adminUrl } = JSON.parse(line) as { readonly adminUrl: string };
  const read = async (): Promise<string> => {
    const answer = await fetch(`${adminUrl}/metrics`);
    assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    return answer.text();
  };
  return { main: `http://127.0.0.1:${port}`, read };
}

test('requests are counted by route and status, with no word of a client', async (t) => {
  const { main, read } = await start(t);
  for (const path of ['/hello', '/hello?a=secret', '/posts/secret', '/secret']) {
    await (await fetch(main + path)).arrayBuffer();
  }
  const body = JSON.stringify({ username: 'user', password: 'secret' });
  const headers = { 'Content-Type': 'application/json' };
  await fetch(`${main}/auth/login`, { method: 'POST', body, headers });
  await fetch(`${main}/hello`, { method: 'PROPFIND' });
  const text = await read();
  const count = (labels: string): string | undefined =>
    new RegExp(`^inkwell_http_request_duration_seconds_count{${labels}} (\\d+)$`, 'm').exec(
      text,
    )?.[1];
  assert.equal(count('method="GET",route="/hello",status="200"'), '2');
  assert.equal(count('method="GET",route="/posts/\\{id\\}",status="404"'), '1');
  assert.equal(count('method="GET",route="none",status="404"'), '1');
  assert.equal(count('method="other",route="none",status="405"'), '1');
  assert.match(text, /^inkwell_security_events_total{event="login failed"} 1$/m);
  assert.match(text, /^inkwell_resident_memory_bytes [1-9]\d+$/m);
  assert.doesNotMatch(text, /secret|NaN|undefined/);
});

test('the buckets of a histogram grow up to its count', async (t) => {
  const { main, read } = await start(t);
  for (let count = 0; count < 5; count += 1) await (await fetch(`${main}/hello`)).arrayBuffer();
  const found = (await read()).matchAll(/_bucket{.*route="\/hello".*} (\d+)$/gm);
  const counts = Array.from(found, ([, count]) => Number(count));
  assert.deepEqual(
    counts,
    counts.toSorted((a, b) => a - b),
  );
  assert.equal(counts.at(-1), 5);
});

test('/metrics is not on the main port', async (t) => {
  const { main } = await start(t);
  assert.equal((await fetch(`${main}/metrics`)).status, 404);
});

const skip = spawnSync('promtool', ['--version']).status !== 0 && 'promtool is not installed here';

test('promtool has nothing against them', { skip }, async (t) => {
  const { main, read } = await start(t);
  await (await fetch(`${main}/hello`)).arrayBuffer();
  const { status, stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], {
    input: await read(),
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr, stdout], [0, '', '']);
});
