// Makes the types of client.ts out of what a running server says of itself.
// usage: node generate.mjs [SERVER] [FOLDER]

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codegen } from '@graphql-codegen/core';
import * as typescriptOperations from '@graphql-codegen/typescript-operations';
import { parse } from 'graphql';
import openapiTypescript from 'openapi-typescript';

const [server = 'http://localhost:8080', folder = join(import.meta.dirname, 'generated')] =
  process.argv.slice(2);

await mkdir(folder, { recursive: true });

const api = await (await fetch(`${server}/openapi.json`)).json();
await writeFile(join(folder, 'api.d.ts'), await openapiTypescript(api));

const schema = await (await fetch(`${server}/graphql/schema.graphql`)).text();
const location = join(import.meta.dirname, 'operations.graphql');
const document = parse(await readFile(location, 'utf8'));
const types = await codegen({
  filename: 'graphql.ts',
  schema: parse(schema),
  documents: [{ location, document }],
  config: {
    scalars: { LocalDateTime: 'string', UUID: 'string', Upload: 'File' },
  },
  plugins: [{ typescriptOperations: {} }],
  pluginMap: { typescriptOperations },
});
await writeFile(join(folder, 'graphql.d.ts'), types);
