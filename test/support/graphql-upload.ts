/** GraphQL multipart requests, and what they leave in the store of files. */

import { readdir } from 'node:fs/promises';
import type { TestServer } from './server.js';

export type Part = readonly [name: string, value: unknown, fileName?: string, type?: string];

function toForm(parts: readonly Part[]): FormData {
  const form = new FormData();
  for (const [name, value, fileName, type = ''] of parts) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (fileName === undefined) form.append(name, text);
    else form.append(name, new Blob([text], { type }), fileName);
  }
  return form;
}

export async function send(
  server: TestServer,
  parts: readonly Part[],
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown }> {
  const body = toForm(parts);
  const response = await server.fetch('/graphql', { method: 'POST', body, headers });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text) };
}

/** Stored name → content, as the download gives it. */
export async function stored(server: TestServer): Promise<Record<string, string>> {
  const form = await (await server.fetch('/api/multiparts')).formData();
  const files: Record<string, string> = {};
  for (const [name, value] of form) {
    if (name !== 'abd') files[name] = typeof value === 'string' ? value : await value.text();
  }
  return files;
}

export async function filesOnDisk(server: TestServer): Promise<number> {
  const names = await readdir(server.folder, { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile()).length;
}
