/** Texts, values and headers that have broken programs. */

export const oddTexts = [
  ['', ' ', '\0', '-', '/', '/0', '/-', '/01', '/4294967296', '/tags/-', '~', '~2'],
  '__proto__ constructor toString ../../etc/passwd ..%2f..%2fetc%2fpasswd %00 %zz'.split(' '),
  ['\ud800', '\u2028', 'é'.repeat(200), 'x'.repeat(5_000)],
  ['"><script>', "' OR 1=1 --", '${7*7}', '*/*;q=0', '0001-02-29T24:00:00Z'],
  'text/plain; charset="utf-16"',
  'application/json; charset=latin1',
  '019b8d5e-9c00-7000-8000-000000000101',
].flat();
export const oddValues: readonly unknown[] = [
  [null, true, 0, -1, 1.5, 1e308, 2 ** 53, -(2 ** 31)],
  [[], {}, [[]], { a: { b: [{ c: null }] } }, ['__proto__']],
].flat();
export const oddHeaders = [
  'Accept Accept-Encoding Authorization Connection Content-Encoding Content-Type'.split(' '),
  'Expect Host If-None-Match Origin Range Sec-Fetch-Site Upgrade __proto__'.split(' '),
  'X-HTTP-Method-Override',
].flat();
export const oddHeaderValues = [
  'a , * */* gzip Bearer close upgrade h2c 100-continue cross-site'.split(' '),
  'Bearer a.b.c',
  'https://evil.example',
  'multipart/form-data',
  'multipart/form-data; boundary=',
  'application/json-patch+json',
  'text/event-stream',
  'application/graphql-response+json;q=0.1',
  'W/"x", "y"',
  'x'.repeat(9_000),
  '\xff\xfe',
].flat();
export const methods = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE get X'.split(' ');
export const graphqlTokens = [
  '{ } ( ) ... null # mutation subscription'.split(' '),
  ['@skip(if: true)', '@include(if: $x)', 'a: id', '$input: [Int!]', '"""block"""'],
  ['"\\u{110000}"', '9'.repeat(400), '__type(name: "Post") { name }'],
  'fragment P on Post { id }',
  'allPosts { author { posts { author { posts { id } } } } }',
  'createPost(createPostInput: {title: "a", content: "b"})',
].flat();

const named = 'Content-Disposition: form-data; name="a"';
export const oddPartHeads = [
  ['', 'X: y', 'Content-Disposition: form-data', 'Content-Disposition: form-data;'],
  'Content-Disposition: form-data; name=a b',
  'Content-Disposition: attachment; name="a"',
  `${named}; filename="../../x"`,
  `${named}; filename="x\r\n y"`,
  `${named}; filename*=utf-8''%00%zz`,
  `${named}\r\nContent-Transfer-Encoding: base64`,
  `${named}\r\nContent-Type: text/plain; charset=nothing`,
].flat();
