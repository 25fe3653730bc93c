/** The API reference as data, and requests that are made as it says. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { createRoutes, type Route, type RouteDeps } from '../../dist/handlers/routes.js';
import { file, form } from './files.ts';
import type { TestServer } from './server.ts';
import { projectFolder } from './source.ts';

type Named<T> = Readonly<Record<string, T>>;

export interface Described {
  readonly headers?: Named<{ readonly example?: string }>;
  readonly content?: Named<Content>;
}

interface Content {
  readonly example?: unknown;
  /** By the code of an error. */
  readonly examples?: Named<{ readonly value: unknown }>;
}

interface Body extends Content {
  readonly schema: { readonly $ref?: string; readonly properties?: object };
}

export interface Operation {
  readonly operationId: string;
  readonly description?: string;
  readonly security?: readonly object[];
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly name: string; readonly example?: unknown }[];
  readonly requestBody?: { readonly content: Named<Body> };
  readonly responses: Named<Described>;
}

export interface Reference {
  readonly info: { readonly version: string };
  readonly paths: Named<PathItem>;
  readonly components: { readonly schemas: Named<Schema> };
}

interface PathItem extends Named<unknown> {
  /** Of all operations of the path. */
  readonly parameters?: Operation['parameters'];
}

interface Schema {
  readonly required?: readonly string[];
  readonly properties?: Named<{ readonly enum?: readonly unknown[] }>;
}

/** Only paths, methods and media types of the table are looked at. */
const anything: unknown = new Proxy(() => anything, { get: () => anything });
export const routes: readonly Route[] = createRoutes(anything as RouteDeps);

const written = await readFile(join(projectFolder, 'docs', 'openapi.yaml'), 'utf8');
/** As it is written. */
export const document = parse(written) as Readonly<Record<string, unknown>>;
/** With what it refers to, except for schemas, in its place. */
export const reference = inline(document) as Reference;

function inline(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inline);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { readonly $ref?: string };
  if ($ref !== undefined && !$ref.startsWith('#/components/schemas/')) return inline(find($ref));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, inline(member)]));
}

function find($ref: string): unknown {
  let found: unknown = document;
  for (const step of $ref.split('/').slice(1)) found = (found as Named<unknown>)[step];
  assert.ok(found !== undefined, $ref);
  return found;
}

/** One route of the reference. */
export interface Entry {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** In the order of the table; what removes comes last. */
export const entries: readonly Entry[] = Object.entries(reference.paths)
  .flatMap(([path, { parameters: shared = [], ...operations }]) =>
    Object.entries(operations as Record<string, Operation>).map(([verb, own]) => {
      const method = verb.toUpperCase();
      const operation = { ...own, parameters: [...shared, ...(own.parameters ?? [])] };
      return { name: `${method} ${path}`, method, path, operation };
    }),
  )
  .toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));

export function isForm({ operation }: Entry): boolean {
  return operation.requestBody?.content['multipart/form-data'] !== undefined;
}

/** For a form, a file that is stored under the name in the examples. */
export function withPart(entry: Entry): Change {
  return isForm(entry) ? { body: form({ part: file('x', 'part.txt') }) } : {};
}

/** What a request has that the reference does not say, or says otherwise. */
export interface Change {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
  /** Of the body; the first of the reference where left out. */
  readonly type?: string;
}

/** Sends what the example of the reference says, but for the change. */
export function askEntry(server: TestServer, entry: Entry, change: Change = {}): Promise<Response> {
  const { method, operation } = entry;
  const path = entry.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(change.params?.[name] ?? ''),
  );
  const target = change.query === undefined ? path : `${path}?${change.query}`;
  const bodies = operation.requestBody?.content ?? {};
  const [first = ''] = Object.keys(bodies);
  const type = change.type ?? first;
  const headers: Record<string, string> = { ...change.headers };
  const init = { method, headers, redirect: 'manual' } as const;
  if (operation.requestBody === undefined) return server.fetch(target, init);
  const own = bodies[type]?.example;
  const body = change.body ?? (type === 'multipart/form-data' ? toForm(own) : JSON.stringify(own));
  // `fetch` names the boundary itself.
  if (typeof body === 'string') headers['Content-Type'] ??= type;
  return server.fetch(target, { ...init, body });
}

function toForm(example: unknown): FormData {
  const data = new FormData();
  for (const [name, content] of Object.entries(example as Record<string, string>)) {
    if (name === 'name') data.append(name, content);
    else data.append(name, new File([content], `${name}.txt`));
  }
  return data;
}

const ajv = new Ajv2020({ strict: false, allErrors: true, inlineRefs: false });
addFormats.default(ajv);
ajv.addSchema(reference, 'reference');

/** Made once by pointer: that takes longer than all that they are asked. */
const validators = new Map<string, ValidateFunction>();

/** What general headers say is said once, or by HTTP. */
const general =
  /^(?:cache-control|connection|content-length|content-type|date|keep-alive|transfer-encoding|vary|x-content-type-options|x-request-id)$/;

/**
 * Holds a response to what the reference says of it: its status, type, members and headers. Gives the
 * names of those headers that the reference has to describe.
 */
export async function check(entry: Entry, response: Response): Promise<readonly string[]> {
  const at = `${entry.name} ${response.status}`;
  const described = entry.operation.responses[response.status];
  assert.ok(described !== undefined, `${at} is not described`);
  const { headers = {}, content = {} } = described;
  const isPlain = 'Preference-Applied' in headers && !response.headers.has('preference-applied');
  const sent = [...response.headers.keys()].filter((header) => !general.test(header));
  const wanted = Object.keys(headers).map((header) => header.toLowerCase());
  for (const header of sent) assert.ok(wanted.includes(header), `${at}: ${header}`);
  const [type] = (response.headers.get('content-type') ?? '').split(';');
  const types = Object.keys(content);
  const location = response.headers.get('location');
  if (location !== null) assert.equal(toPattern(headers['Location']?.example), toPattern(location));
  const text = await response.text();
  // What is described is for those who prefer it.
  if (isPlain && text === '') return sent;
  if (types.length === 0) assert.equal(text, '', at);
  else if (types[0] !== 'application/octet-stream') assert.deepEqual([type], types, at);
  else {
    const range = `${type?.split('/')[0]}/*`;
    assert.ok(types.includes(type ?? '') || types.includes(range), `${at}: ${type}`);
  }
  const { example } = content[types[0] ?? ''] ?? {};
  if (types[0] === 'text/plain') assert.equal(text, example, at);
  if (types[0] === 'multipart/form-data') {
    // The first part is the same each time, and the delimiter is not.
    const [delimiter = ''] = text.split('\r\n');
    const parts = String(example).replace('--b--\r\n', '');
    assert.ok(text.replaceAll(delimiter, '--b').startsWith(parts), at);
  }
  if (type?.endsWith('json') !== true) return sent;
  const pointer = `paths/${escape(entry.path)}/${entry.method.toLowerCase()}/responses/${response.status}`;
  const real: unknown = JSON.parse(text);
  assertValid(real, `${pointer}/content/${escape(type)}`, at);
  const { examples } = content[type] ?? {};
  if (Array.isArray(real) && real.length === 0) return sent;
  const shown = examples?.[(real as { readonly code: string }).code]?.value ?? example;
  assert.deepEqual(shapeOf(shown), shapeOf(real), at);
  return sent;
}

/** `pointer`: what has the schema, in the reference. */
export function assertValid(value: unknown, pointer: string, at: string): void {
  const isValid = validators.get(pointer) ?? ajv.compile({ $ref: `reference#/${pointer}/schema` });
  validators.set(pointer, isValid);
  assert.ok(isValid(value), `${at}: ${ajv.errorsText(isValid.errors)} in ${JSON.stringify(value)}`);
}

/** The members of a value, with their types; of an array, those of its first element. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return typeof value;
  const members = Object.entries(value).map(([key, member]) => [key, shapeOf(member)]);
  return Object.fromEntries(members) as unknown;
}

/** Without what differs from run to run: hosts, ids and numbers. */
function toPattern(location: string | undefined): string | undefined {
  return location
    ?.replace(/^http:\/\/[^/]+/, 'http://host')
    .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'uuid')
    .replaceAll(/\d+/g, 'number');
}

/** As a step of a pointer in a URI. */
export function escape(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** The members that a JSON body must have. */
export function requiredOf({ operation }: Entry): readonly string[] | undefined {
  const ref = operation.requestBody?.content['application/json']?.schema.$ref;
  return reference.components.schemas[ref?.split('/').at(-1) ?? '']?.required;
}
