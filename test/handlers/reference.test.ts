/** The API reference says what the service does, of every route: no more and no less. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { httpStatusOf, type ErrorCode } from '../../dist/errors.js';
import { file, form, postForm } from '../support/files.ts';
import { pluck } from '../support/lists.ts';
import { askEntry, assertValid, type Change, check, type Described } from '../support/reference.ts';
import {
  document,
  entries,
  type Entry,
  escape,
  reference,
  requiredOf,
  routes,
} from '../support/reference.ts';
import { logIn } from '../support/login.ts';
import { faults } from '../support/reference-faults.ts';
import { type ServerOptions, startServer, type TestServer } from '../support/server.ts';
import { projectFolder } from '../support/source.ts';

/** Pages, GraphQL, the reference itself, and what only operators are given: no routes of REST. */
const elsewhere = /^(?:\/|\/graphql.*|\/docs.*|\/openapi\.json|\/metrics)$/;

describe('the API reference', () => {
  it('describes every route, and none that is not there', () => {
    const rest = routes.filter(({ path }) => !elsewhere.test(path));
    const names = rest.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(pluck(entries, 'name').toSorted(), names.toSorted());
    const ids = entries.map(({ operation }) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length);
    for (const { name, operation } of entries) assert.ok(operation.description, name);
  });

  it('says of each operation that can be refused without a token that it takes one', () => {
    for (const { name, operation } of entries) {
      const { content = {} } = operation.responses['401'] ?? {};
      const isChecked = 'missing_token' in (content['application/problem+json']?.examples ?? {});
      const takesToken = operation.security?.some((each) => 'bearer' in each) === true;
      assert.equal(takesToken, isChecked, name);
    }
  });

  it('is of this version', async () => {
    const text = await readFile(join(projectFolder, 'package.json'), 'utf8');
    const { version } = JSON.parse(text) as { readonly version: string };
    assert.equal(reference.info.version, version);
  });

  it('has an example of every body and answer, which fits its schema', () => {
    let count = 0;
    for (const { path, method, operation } of entries) {
      const at = `paths/${escape(path)}/${method.toLowerCase()}`;
      const responses = Object.entries(operation.responses).map(
        ([status, response]) => [`${at}/responses/${status}`, response] as const,
      );
      const request: Described = operation.requestBody ?? {};
      const all = [[`${at}/requestBody`, request] as const, ...responses];
      for (const [place, { content = {} }] of all) {
        for (const [type, { example, examples = {} }] of Object.entries(content)) {
          const values = Object.entries(examples).map(([code, { value }]) => {
            const { code: own, status } = value as { code: ErrorCode; status: number };
            assert.deepEqual([own, status], [code, httpStatusOf[own]], place);
            return value;
          });
          const shown = example === undefined ? values : [example];
          assert.ok(shown.length > 0, place);
          for (const value of shown) assertValid(value, `${place}/content/${escape(type)}`, place);
          count += shown.length;
        }
      }
    }
    assert.ok(count > 60, `${count} examples`);
  });

  it('lists every code of an error', () => {
    const { code } = reference.components.schemas['Problem']?.properties ?? {};
    assert.deepEqual(code?.enum, Object.keys(httpStatusOf));
  });

  it('has no component that nothing refers to', () => {
    const text = JSON.stringify(document);
    const components = document['components'] as Readonly<Record<string, object>>;
    for (const [kind, named] of Object.entries(components)) {
      if (kind === 'securitySchemes') continue;
      for (const name of Object.keys(named)) {
        assert.ok(text.includes(`"#/components/${kind}/${name}"`), `${kind}/${name}`);
        // In a generated client it would hide a type of the language, such as File.
        assert.ok(kind !== 'schemas' || !(name in globalThis), name);
      }
    }
  });

  it('is served as JSON', async (t) => {
    const server = await startServer(t);
    const response = await server.fetch('/openapi.json');
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.deepEqual(await response.json(), document);
    const refused = await server.fetch('/openapi.json', { headers: { Accept: 'text/html' } });
    assert.equal(refused.status, 406);
  });
});

/** A request that is answered with that status, where an operation has it. */
const askedFor: Readonly<Record<string, Change>> = {
  206: { headers: { Range: 'bytes=0-3' } },
  304: { headers: { 'If-None-Match': '*' } },
};
/** Seen elsewhere: a server that stops, or whose store is away, and what a redirect leads to. */
const seenElsewhere = new Set([
  'GET /readyz 503',
  'GET /articles/{id} 200',
  // A store in memory keeps no account.
  'POST /auth/password 204',
]);

/** Of each server: a token of one is good for all. */
const signing = { JWT_SECRET: 's'.repeat(32), TOKEN_TTL_SECONDS: '3600' };
const limits = { LOGIN_FAILURES_MAX: '1', COMMENTS: 'open', COMMENTS_PER_MINUTE_MAX: '1' };

describe('what the API reference says', () => {
  const ends: (() => Promise<void>)[] = [];
  const ids = new Map<string, string>();
  let server: TestServer;
  let tokenOfUser = '';
  /** Where a fault needs a server of its own. */
  const others = new Map<string, TestServer>();

  before(async () => {
    const start = async (options: ServerOptions): Promise<TestServer> => {
      const env = { ...signing, ...options.env };
      const started = await startServer({ after: (end) => ends.push(end) }, { ...options, env });
      const name = options.constants ? 'other.txt' : 'part.txt';
      await postForm(started, 'list', form({ a: file('a stored file', name) }));
      return started;
    };
    server = await start({ env: { BODY_BYTES_MAX: '1024', UPLOAD_BYTES_MAX: '1024' } });
    const todo = entries.find(({ name }) => name === 'POST /api/todos') ?? assert.fail();
    assert.ok((await askEntry(server, todo, { headers: { 'Idempotency-Key': 'used' } })).ok);
    others.set('storage_full', await start({ constants: { storedFilesMax: 1 } }));
    const startIn = (REQUIRE_AUTH: string, more = {}) =>
      startServer(
        { after: (end) => ends.push(end) },
        { env: { ...signing, ...more, REQUIRE_AUTH } },
      );
    others.set('too_many_requests', await startIn('writes', limits));
    const [strict, closed] = [await startIn('writes'), await startIn('members')];
    for (const code of ['missing_token', 'invalid_token']) {
      others.set(code, strict).set(`read: ${code}`, closed);
    }
    const owned = await startIn('owners');
    others.set('forbidden', owned);
    const headers = { Authorization: `Bearer ${await logIn(owned, 'admin')}` };
    const body = form({ a: file('of another account', 'part.txt') });
    await owned.fetch('/api/multiparts/list', { method: 'POST', headers, body });
    tokenOfUser = `Bearer ${await logIn(owned)}`;
    ids.set('articles', '1');
    const first = async (path: string, at = 0): Promise<string> =>
      (await server.read<{ id: string }[]>(path))[at]?.id ?? '';
    ids.set('posts', await first('/posts'));
    const second = { content: 'So that there is a second page.' };
    await server.send('POST', `/posts/${ids.get('posts')}/comments`, second);
    // Of another post: that one is deleted before its comments.
    ids.set('comments', await first(`/posts/${await first('/posts', 1)}/comments`));
    ids.set('todos', await first('/api/todos'));
  });

  after(async () => {
    for (const end of ends) await end();
  });

  /** The ids of this run: those of records are made anew for each. */
  const withIds = ({ path }: Entry, change: Change = {}): Change => {
    const [, area = '', second = ''] = path.split('/');
    const id = ids.get(area === 'api' ? second : area) ?? '';
    return { params: { id, name: 'part.txt' }, ...change };
  };
  const tokenFor = ({ path }: Entry): Change => {
    const needsToken = ['/profile', '/auth/refresh', '/auth/password'].includes(path);
    return needsToken ? { headers: { Authorization: tokenOfUser } } : {};
  };

  for (const entry of entries) {
    const { name, operation } = entry;
    const statuses = Object.keys(operation.responses).filter((status) => status !== 'default');
    const success = statuses.find(
      (status) => Number(status) < 400 && !seenElsewhere.has(`${name} ${status}`),
    );
    const delivered = new Map<string, Set<string>>();
    const send = async (change: Change, on = server): Promise<Response> => {
      // What is wrong with its body is told to the account alone.
      const own = change.body === undefined ? {} : tokenFor(entry);
      const headers = { ...own.headers, ...change.headers };
      const response = await askEntry(on, entry, withIds(entry, { ...change, headers }));
      const sent = await check(entry, response.clone());
      const seen = delivered.get(String(response.status)) ?? [];
      delivered.set(String(response.status), new Set([...seen, ...sent]));
      return response;
    };

    it(`${name}: no fault gives what is not described, and all that is can be had`, async () => {
      for (const [code, fault] of Object.entries(faults)) {
        const status = httpStatusOf[code as ErrorCode];
        const { content = {} } = operation.responses[status] ?? {};
        const isDescribed = code in (content['application/problem+json']?.examples ?? {});
        // What does not stop it removes what is to be removed at last. The parameter tells of keys.
        const isRemoval = entry.method === 'DELETE' || entry.path.endsWith('/removals');
        if ((isRemoval || code.includes('idempotency')) && !isDescribed) continue;
        // Reads need a token in one mode alone.
        const isRead = entry.method === 'GET';
        const on = others.get(isRead ? `read: ${code}` : code) ?? others.get(code) ?? server;
        let response = await send(fault(entry, tokenOfUser), on);
        if (code === 'too_many_requests') response = await send(fault(entry, tokenOfUser), on);
        if (!isDescribed) continue;
        const problem = (await response.json()) as { readonly code: string };
        assert.equal(problem.code, code, name);
      }
      if (operation.parameters?.some((each) => each.name === 'limit') === true) {
        assert.match((await send({ query: 'limit=1' })).headers.get('link') ?? '', /rel="next"/);
      }
      for (const [at, status] of statuses.filter((each) => each in askedFor).entries()) {
        assert.equal((await send(askedFor[status] ?? {})).status, Number(status), `status ${at}`);
      }
      for (const type of Object.keys(operation.requestBody?.content ?? { none: {} })) {
        const own = tokenFor(entry);
        const hasKey = operation.parameters?.some((each) => each.name === 'Idempotency-Key');
        const keyed = { headers: { 'Idempotency-Key': `${name}${type}`.replaceAll(' ', '') } };
        const change = { ...(hasKey === true ? keyed : own), ...(type !== 'none' && { type }) };
        for (let again = 0; again < (hasKey === true ? 2 : 1); again += 1) {
          const response = await send(change);
          if (success !== undefined) assert.equal(String(response.status), success, name);
        }
      }
      if (operation.parameters?.some((each) => each.name === 'Prefer') === true) {
        const preferred = await send({ headers: { Prefer: 'return=representation' } });
        assert.equal(preferred.headers.get('preference-applied'), 'return=representation');
      }
      const missed = statuses.filter(
        (status) => !delivered.has(status) && !seenElsewhere.has(`${name} ${status}`),
      );
      assert.deepEqual(missed, [], name);
      for (const [status, seen] of delivered) {
        const headers = Object.keys(operation.responses[status]?.headers ?? {});
        const absent = headers.filter((header) => !seen.has(header.toLowerCase()));
        assert.deepEqual(absent, [], `${name} ${status}`);
      }
    });

    const required = requiredOf(entry);
    if (required === undefined) continue;
    it(`${name}: what the body must have is what an empty one lacks`, async () => {
      const response = await send({ body: '{}' });
      const { errors } = (await response.json()) as { errors: readonly { pointer: string }[] };
      const lacking = errors.map(({ pointer }) => pointer.slice(1));
      assert.deepEqual(lacking.toSorted(), [...required].toSorted());
    });
  }
});

describe('what the API reference says of no operation by itself has the form of its default', () => {
  const checkDefault = async (entry: Entry, asked: Promise<Response>, code: string) => {
    const response = await asked;
    const at = `${entry.name} ${code}`;
    const type = 'application/problem+json';
    assert.equal(response.headers.get('content-type'), type, at);
    const problem = (await response.json()) as { readonly code: string; readonly status: number };
    assert.deepEqual([problem.code, problem.status], [code, response.status], at);
    const responses = `paths/${escape(entry.path)}/${entry.method.toLowerCase()}/responses`;
    assertValid(problem, `${responses}/default/content/${escape(type)}`, at);
  };

  it('a method that no path has, a target that is too long, a store that is full', async (t) => {
    const server = await startServer(t, { env: { MEMORY_STORE_BYTES_MAX: '1048576' } });
    const [post = assert.fail()] = await server.read<{ id: string }[]>('/posts');
    const params = { id: post.id, name: 'a' };
    for (const entry of entries) {
      const unknown = { ...entry, method: 'PROPFIND' };
      await checkDefault(entry, askEntry(server, unknown, { params }), 'not_implemented');
      const long = askEntry(server, entry, { params, query: 'x'.repeat(10_000) });
      await checkDefault(entry, long, 'target_too_long');
    }
    for (let status = 201; status === 201;) {
      ({ status } = await server.send('POST', '/api/todos', { title: 'x'.repeat(50_000) }));
    }
    const content = 'x'.repeat(60_000);
    const body = JSON.stringify({ title: content, content });
    const creation = /^POST (?:\/posts|\/api\/(?:todos|art))/;
    const creating = entries.filter(({ name }) => creation.test(name));
    assert.equal(creating.length, 4);
    for (const entry of creating) {
      await checkDefault(entry, askEntry(server, entry, { params, body }), 'storage_full');
    }
  });
});
