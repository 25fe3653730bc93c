/**
 * The floor: bare `node:http` that reads a request whole and writes the response that it was told.
 * Started with a JSON file: method and path → status, headers, body in base64.
 */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const responses = new Map(
  Object.entries(JSON.parse(readFileSync(process.argv[2], 'utf8'))).map(([key, response]) => {
    const bytes = Buffer.from(response.body, 'base64');
    // A short text goes out with its head in one piece, a long one is kept as bytes.
    return [key, { ...response, body: bytes.length < 2048 ? bytes.toString() : bytes }];
  }),
);

const nothing = { status: 404, headers: {}, body: '' };

const server = createServer((incoming, outgoing) => {
  const response = responses.get(`${incoming.method} ${incoming.url}`) ?? nothing;
  const send = () => {
    outgoing.writeHead(response.status, response.headers);
    outgoing.end(response.body);
  };
  if (incoming.method === 'GET') {
    send();
    return;
  }
  incoming.on('data', () => undefined);
  incoming.on('end', send);
});
server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
