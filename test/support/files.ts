/** Uploads and downloads as a browser makes them. */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { multipartType } from './multipart.ts';
import type { TestServer } from './server.ts';

export type Entry = readonly [name: string, fileName: string, type: string, content: string];

/** Whatever answers requests. */
export type Asked = Pick<TestServer, 'fetch'>;

/** What GET gives back, as a browser reads it. */
export async function download(server: Asked): Promise<Entry[]> {
  const response = await server.fetch('/api/multiparts');
  assert.equal(response.status, 200);
  const entries: Entry[] = [];
  for (const [name, value] of await response.formData()) {
    assert.ok(value instanceof File, name);
    entries.push([name, value.name, value.type, await value.text()]);
  }
  return entries;
}

export async function stored(server: Asked): Promise<Entry[]> {
  return (await download(server)).slice(1);
}

export async function postForm(
  server: Asked,
  path: string,
  body: FormData | Buffer | string,
): Promise<Response> {
  const headers = body instanceof FormData ? {} : { 'Content-Type': multipartType };
  return server.fetch(`/api/multiparts/${path}`, { method: 'POST', body, headers });
}

/** The code of a refusal; fails where the response is none. */
export async function refusal(response: Response): Promise<readonly [number, unknown]> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  const body = (await response.json()) as { readonly code: unknown };
  return [response.status, body.code];
}

export async function filesOnDisk({ folder }: TestServer): Promise<string[]> {
  const [run = ''] = await readdir(folder);
  return readdir(join(folder, run));
}

export function form(entries: Readonly<Record<string, string | Blob>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(entries)) data.append(name, value);
  return data;
}

export function file(content: Buffer | string, name: string, type = ''): File {
  return new File([content], name, { type });
}
