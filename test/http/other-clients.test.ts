import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startServer } from '../support/server.ts';

interface Ran {
  readonly found: boolean;
  readonly output: string;
}

/** What a program wrote; `found` is false where the machine does not have it. */
function run(program: string, ...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: 300_000 }, (error, output, errors) => {
      if (error?.code === 'ENOENT') resolve({ found: false, output });
      else if (error) reject(new Error(`${program}: ${errors}`, { cause: error }));
      else resolve({ found: true, output });
    });
  });
}

async function writeScript(t: TestContext, name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-client-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const php = `<?php
if (!extension_loaded('curl')) exit;
function send(string $path, $body, array $headers = []): string {
  global $argv;
  $curl = curl_init($argv[1] . $path);
  curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_HTTPHEADER => $headers]);
  curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
  $text = curl_exec($curl);
  return curl_getinfo($curl, CURLINFO_RESPONSE_CODE) . " $text\\n";
}
$json = ['Content-Type: application/json'];
ini_set('serialize_precision', '17');
echo send('/api/articles', json_encode(['title' => 'a', 'tags' => [], 'price' => 9.95]), $json);
echo send('/graphql', json_encode(['query' => '{ __typename }', 'variables' => []]), $json);
$file = new CURLFile(__FILE__, 'text/plain', "ü \\"q\\" \\\\ b.txt");
echo send('/api/multiparts/simple', ['part' => $file, 'submit' => 'go']);
$query = 'mutation ($f: Upload!) { upload(file: $f) }';
$operations = json_encode(['query' => $query, 'variables' => ['f' => null]]);
$map = json_encode([['variables.f']]);
echo send('/graphql', ['operations' => $operations, 'map' => $map, '0' => $file]);
$context = ['method' => 'POST', 'header' => $json, 'content' => '{"title":"a","content":"b"}'];
file_get_contents($argv[1] . '/posts', false, stream_context_create(['http' => $context]));
echo $http_response_header[0];
`;

test("PHP's curl and streams are served, with its spelling of maps and numbers", async (t) => {
  const script = await writeScript(t, 'client.php', php);
  const server = await startServer(t);
  const { found, output } = await run('php', script, server.url);
  if (!found || output === '') return t.skip('there is no php with curl on this machine');
  assert.deepEqual(output.split('\n'), [
    '201 ',
    '200 {"data":{"__typename":"Query"}}',
    '200 ',
    '200 {"data":{"upload":true}}',
    'HTTP/1.1 201 Created',
  ]);
  assert.equal((await server.fetch('/files/%20b.txt')).status, 200);
});
