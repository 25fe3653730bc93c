/** Todos over REST (Spec §4.5, R12, R13). */

import { toId } from '../domain/ids.ts';
import { readJson } from '../http/json.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import type { Todo } from '../store/model.ts';
import type { TodoMembers } from '../store/store.ts';
import { changeRecord, readFor, readMergePatch, tagBy } from './changes.ts';
import { decoderOf, flag, optional, optionalOrNull, text } from './decode.ts';
import type { HandlerDeps } from './deps.ts';
import { findOnce, toWritten } from './once.ts';

const route: ListRoute<Todo> & RecordRoute<string, Todo> = {
  key: '/api/todos',
  noun: 'todo',
  list: ({ todos }) => todos.all,
  find: ({ todos }, id) => todos.find(id),
  toId,
  toJson,
};

/** A todo as a client sends it (R13); its id is ignored. */
const decodeTodo = decoderOf<{ title: string; completed?: boolean | null }>({
  title: text,
  completed: optionalOrNull(flag),
});

/** The members that a merge patch changes (R37). */
const decodeChange = decoderOf<Partial<TodoMembers>>({
  title: optional(text),
  completed: optional(flag),
});

export function createTodoHandlers({ store, viewerOf, records, config }: HandlerDeps) {
  const { bodyBytesMax, publicUrl } = config;
  const { todos } = store;
  const get = async (request: HttpRequest): Promise<Todo> =>
    getFound(await todos.find(getId(request, route)), route.noun);
  const find = records.find(route);
  const created = records.created(route, () => undefined);
  const current = { get, tagOf: tagBy(toJson), viewerOf, store };
  return {
    list: (request) => records.list(request, undefined, route),
    find: (request) => find(request, undefined),

    create: async (request) => {
      const { title, completed } = await readJson(request, bodyBytesMax, decodeTodo);
      const draft = { title, completed: completed ?? false };
      const todo = await todos.create(draft, await findOnce(request, viewerOf));
      // PUBLIC_URL tells whether a proxy terminates TLS; request headers are not trusted (R12).
      const base = publicUrl || `http://${request.host}`;
      const response = await created(request, todo.id, `${base}/api/todos/${todo.id}`);
      return toWritten(response, todo);
    },
    patch: async (request) => {
      const body = readMergePatch(request, bodyBytesMax, decodeChange);
      const change = await readFor(() => get(request), body);
      return changeRecord(request, current, ({ id }, options) => todos.update(id, change, options));
    },
    remove: (request) =>
      changeRecord(request, current, ({ id }, options) => todos.remove(id, options)),
  } satisfies Readonly<Record<string, Handler>>;
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
