/** The API reference as data, and requests that are made as it says. */

import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describeApi } from '../../dist/handlers/reference/reference.js';
import { createRoutes, type Handlers, type Route } from '../../dist/handlers/routes.js';
import type { TestServer } from './server.js';

export interface Described {
  readonly headers?: Readonly<Record<string, { readonly example?: string }>>;
  readonly content?: Readonly<
    Record<
      string,
      {
        readonly example?: unknown;
        /** By the code of an error. */
        readonly examples?: Readonly<Record<string, { readonly $ref: string }>>;
      }
    >
  >;
  readonly $ref?: string;
  readonly description: string;
}

interface Body {
  readonly schema: { readonly $ref?: string; readonly properties?: object };
  readonly example: unknown;
}

export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, Body>>;
    readonly description: string;
  };
  readonly responses: Readonly<Record<string, Described>>;
}

export interface Reference {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Described>>;
    readonly examples: Readonly<Record<string, { readonly value: unknown }>>;
    readonly schemas: Readonly<Record<string, { readonly required?: readonly string[] }>>;
  };
}

/** Only paths, methods and media types of the table are looked at. */
const anything: unknown = new Proxy(() => anything, { get: () => anything });
export const routes: readonly Route[] = createRoutes(anything as Handlers);
export const reference = describeApi(routes) as unknown as Reference;

/** One route of the reference. */
export interface Entry {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** In the order of the table; what removes comes last. */
export const entries: readonly Entry[] = Object.entries(reference.paths)
  .flatMap(([path, operations]) =>
    Object.entries(operations).map(([verb, operation]) => {
      const method = verb.toUpperCase();
      return { name: `${method} ${path}`, method, path, operation };
    }),
  )
  .toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));

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
export function ask(server: TestServer, entry: Entry, change: Change = {}): Promise<Response> {
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
  const form = new FormData();
  for (const [name, content] of Object.entries(example as Record<string, string>)) {
    form.append(name, new File([content], `${name}.txt`));
  }
  return form;
}

const ajv = new Ajv2020({ strict: false, allErrors: true, inlineRefs: false });
addFormats.default(ajv);
ajv.addSchema(reference, 'reference');

/** Made once by pointer: that takes longer than all that they are asked. */
const validators = new Map<string, ValidateFunction>();

/** What general headers say is said once, or by HTTP. */
const general =
  /^(?:connection|content-length|content-type|date|keep-alive|transfer-encoding|x-content-type-options)$/;

/**
 * Holds a response to what the reference says of it: its status, type, members and headers. Gives the
 * names of those headers that the reference has to describe.
 */
export async function check(entry: Entry, response: Response): Promise<readonly string[]> {
  const at = `${entry.name} ${response.status}`;
  const described = entry.operation.responses[response.status];
  assert.ok(described !== undefined, `${at} is not described`);
  const name = described.$ref?.split('/').at(-1);
  const { headers = {}, content = {} } =
    name === undefined ? described : (reference.components.responses[name] ?? described);
  const sent = [...response.headers.keys()].filter((header) => !general.test(header));
  const wanted = Object.keys(headers).map((header) => header.toLowerCase());
  assert.deepEqual(
    sent.filter((header) => !wanted.includes(header)),
    [],
    at,
  );
  const [type] = (response.headers.get('content-type') ?? '').split(';');
  const types = Object.keys(content);
  const location = response.headers.get('location');
  if (location !== null) assert.equal(toPattern(headers['Location']?.example), toPattern(location));
  const text = await response.text();
  if (types.length === 0) assert.equal(text, '', at);
  else if (types[0] !== 'application/octet-stream') assert.deepEqual([type], types, at);
  const { example } = content[types[0] ?? ''] ?? {};
  if (types[0] === 'text/plain') assert.equal(text, example, at);
  if (types[0] === 'multipart/form-data') {
    // The first part is the same each time, and the delimiter is not.
    const [delimiter = ''] = text.split('\r\n');
    const parts = String(example).replace('--b--\r\n', '');
    assert.ok(text.replaceAll(delimiter, '--b').startsWith(parts), at);
  }
  if (type?.endsWith('json') !== true) return sent;
  const pointer =
    name === undefined
      ? `paths/${escape(entry.path)}/${entry.method.toLowerCase()}/responses/${response.status}`
      : `components/responses/${name}`;
  const real: unknown = JSON.parse(text);
  assertValid(real, `${pointer}/content/${escape(type)}`, at);
  const shown = type.includes('problem') ? problemLike((real as { code: string }).code) : example;
  assert.deepEqual(shapeOf(shown), shapeOf(real), at);
  return sent;
}

/** The example of a problem with this code. */
export function problemLike(code: string): unknown {
  return reference.components.examples[code]?.value;
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
