/** What clients intend, sent through a proxy that loses; and that each was done once (R40). */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answered, sendUntilAnswered, type Write } from './lossy-proxy.ts';
import { multipartBody, multipartType, part } from './multipart.ts';

const atOnce = 40;
const json = 'application/json';

interface Places {
  readonly post: string;
  readonly article: string;
}

/** Creates what the intents write to. */
export async function prepare(url: string): Promise<Places> {
  const create = async (path: string, value: object): Promise<string> => {
    const init = { method: 'POST', headers: { 'Content-Type': json }, body: JSON.stringify(value) };
    const response = await fetch(`${url}${path}`, init);
    assert.equal(response.status, 201);
    return response.headers.get('location') ?? '';
  };
  const post = await create('/posts', { title: 'read by many', content: 'text' });
  const article = await create('/api/articles', { title: 'changed by many', seen: [] });
  return { post, article: `/api${article}` };
}

/** Of a file with this name. */
const contentOf = (name: string): string => name.padEnd(20_000, '.');

/** One intent of five is a comment, a post, a todo, an addition to an article, and a file each. */
function toWrite({ post, article }: Places, at: number): Write {
  const key = randomUUID();
  const text = `intent ${at}`;
  const creating = (path: string, value: object): Write => {
    return { method: 'POST', path, type: json, body: JSON.stringify(value), key };
  };
  if (at % 5 === 0) return creating(`${post}/comments`, { content: text });
  if (at % 5 === 1) return creating('/posts', { title: text, content: 'text' });
  if (at % 5 === 2) return creating('/api/todos', { title: text });
  if (at % 5 === 4) {
    const body = multipartBody([part('part', contentOf(text), { fileName: text })]).toString();
    return { method: 'POST', path: '/api/multiparts/list', type: multipartType, body, key };
  }
  const body = JSON.stringify([{ op: 'add', path: '/seen/-', value: at }]);
  return { method: 'PATCH', path: article, type: 'application/json-patch+json', body, key };
}

export interface Sent {
  readonly answers: readonly Answered[];
  /** How many were answered so far. */
  readonly done: () => number;
}

/** Sends all intents, forty at a time, and resolves with an answer to each. */
export function sendIntents(port: number, places: Places, count: number) {
  const answers: Answered[] = [];
  let [next, done] = [0, 0];
  const work = async (): Promise<void> => {
    while (next < count) {
      const at = next;
      next += 1;
      answers[at] = await sendUntilAnswered(port, toWrite(places, at));
      done += 1;
    }
  };
  const all = Promise.all(Array.from({ length: atOnce }, work)).then(() => answers);
  return { answers: all, done: () => done };
}

/** Each intent is one record, or one whole file, and its answer names this record. */
export async function checkOnce(
  url: string,
  { post, article }: Places,
  answers: readonly Answered[],
): Promise<void> {
  const read = async (path: string): Promise<unknown> => (await fetch(`${url}${path}`)).json();
  const textsOf = async (path: string, base: string, member: string) => {
    const records = (await read(path)) as readonly Record<string, string>[];
    return records
      .map((record) => [`${base}/${record['id']}`, record[member] ?? ''] as const)
      .filter(([, text]) => text.startsWith('intent '));
  };
  const stored = [
    ...(await textsOf(`${post}/comments`, '/comments', 'content')),
    ...(await textsOf('/posts', '/posts', 'title')),
    ...(await textsOf('/api/todos', '/api/todos', 'title')),
  ];
  const told = answers.flatMap(({ status, location }, at) => {
    assert.equal(status, [201, 201, 201, 204, 200][at % 5], `intent ${at}`);
    if (location === undefined) return [];
    return [[new URL(location, url).pathname, `intent ${at}`] as const];
  });
  const byText = (a: readonly string[], b: readonly string[]): number =>
    `${a[1]} ${a[0]}` < `${b[1]} ${b[0]}` ? -1 : 1;
  assert.deepEqual(stored.toSorted(byText), told.toSorted(byText));
  const { seen } = (await read(article)) as { readonly seen: readonly number[] };
  const ofKind = (kind: number) => [...answers.keys()].filter((at) => at % 5 === kind);
  assert.deepEqual(
    seen.toSorted((a, b) => a - b),
    ofKind(3),
  );
  const listed = (await read('/files')) as readonly { readonly name: string }[];
  const names = listed.map(({ name }) => name).filter((name) => name.startsWith('intent '));
  assert.deepEqual(
    names.toSorted(),
    ofKind(4)
      .map((at) => `intent ${at}`)
      .toSorted(),
  );
  for (const name of names) {
    const file = await fetch(`${url}/files/${encodeURIComponent(name)}`);
    assert.equal(await file.text(), contentOf(name), name);
  }
}
