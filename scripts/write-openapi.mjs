/** Writes docs/openapi.yaml out of the build: what `GET /openapi.json` answers. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { describeApi } from '../dist/handlers/reference/reference.js';
import { createRoutes } from '../dist/handlers/routes.js';

/** Any handler does: only paths, methods and media types are read. */
const anything = new Proxy(() => anything, { get: () => anything });

/** The document as YAML; what is repeated is written again, for readers that know no anchors. */
export function openapiYaml() {
  const text = stringify(describeApi(createRoutes(anything)), { aliasDuplicateObjects: false });
  return `# Made by \`npm run openapi\` out of src/handlers/reference/operations.ts.\n${text}`;
}

if (process.argv[1] === import.meta.filename) {
  await writeFile(join(import.meta.dirname, '..', 'docs', 'openapi.yaml'), openapiYaml());
}
