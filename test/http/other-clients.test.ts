import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { testAtLength } from '../support/long.ts';
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

const java = `
import java.net.URI;
import java.net.http.*;

public class Client {
  public static void main(String[] args) throws Exception {
    // Its default version is HTTP/2: each request asks for an upgrade to h2c.
    HttpClient client = HttpClient.newHttpClient();
    URI posts = URI.create(args[0] + "/posts");
    HttpRequest create = HttpRequest.newBuilder(posts)
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString("{\\"title\\":\\"from Java\\",\\"content\\":\\"b\\"}"))
        .build();
    HttpResponse<String> made = client.send(create, HttpResponse.BodyHandlers.ofString());
    String location = made.headers().firstValue("Location").orElse("");
    HttpRequest read = HttpRequest.newBuilder(URI.create(args[0] + location)).build();
    String post = client.send(read, HttpResponse.BodyHandlers.ofString()).body();
    java.net.HttpURLConnection old =
        (java.net.HttpURLConnection) URI.create(args[0] + location).toURL().openConnection();
    System.out.println(made.statusCode() + " " + old.getResponseCode() + " " + post);
  }
}
`;

// Java compiles its program first: seconds of processor time.
testAtLength("Java's HttpClient and HttpURLConnection are served", async (t) => {
  const script = await writeScript(t, 'Client.java', java);
  const server = await startServer(t);
  const { found, output } = await run('java', '-XX:TieredStopAtLevel=1', script, server.url);
  if (!found) return t.skip('there is no java on this machine');
  assert.match(output, /^201 200 \{.*"title":"from Java"/);
});

test('curl --http2 is served: an upgrade that is not taken ends the connection', async (t) => {
  const server = await startServer(t);
  const url = `${server.url}/hello`;
  const format = '%{http_code} %{num_connects}\n';
  const { found, output } = await run('curl', '-sS', '--http2', '-w', format, url, url);
  if (!found) return t.skip('there is no curl on this machine');
  assert.deepEqual(output.match(/\d{3} \d/g), ['200 1', '200 1']);
});

const python = `
import http.client, json, sys

connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
body = json.dumps({"title": "from Python \\u00fc", "content": "b"}).encode()
headers = {"Content-Type": "application/json"}
connection.request("POST", "/posts", body, headers)
made = connection.getresponse()
made.read()
connection.request("GET", made.headers["Location"])
post = json.loads(connection.getresponse().read())
# An iterable is sent chunked.
connection.request("POST", "/posts", iter([body[:5], body[5:]]), headers, encode_chunked=True)
chunked = connection.getresponse()
chunked.read()
connection.request("HEAD", "/hello")
head = connection.getresponse()
print(made.status, chunked.status, head.status, ascii(post["title"]))
`;

test("Python's http.client is served, with a chunked body and HEAD", async (t) => {
  const script = await writeScript(t, 'client.py', python);
  const server = await startServer(t);
  const { found, output } = await run('python3', script, String(server.port));
  if (!found) return t.skip('there is no python3 on this machine');
  assert.equal(output, "201 201 200 'from Python \\xfc'\n");
});

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
