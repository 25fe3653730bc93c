/** Todos over REST (Spec §4.5, R12, R13). */

import { toId } from '../domain/ids.ts';
import { readJson } from '../http/json.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { getRecord, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import type { Todo } from '../store/model.ts';
import type { TodoMembers } from '../store/store.ts';
import { changeRecord, readMergePatch } from './changes.ts';
import { decoderOf, flag, optional, text } from './decode.ts';
import type { HandlerDeps } from './deps.ts';

const route: ListRoute<Todo> & RecordRoute<string, Todo> = {
  key: '/api/todos',
  noun: 'todo',
  list: ({ todos }) => todos.all,
  find: ({ todos }, id) => todos.find(id),
  toId,
  toJson,
};

/** A todo as a client sends it (R13); its id is ignored. */
const decodeTodo = decoderOf<{ title: string; completed?: boolean }>({
  title: text,
  completed: optional(flag),
});

/** The members that a merge patch changes (R37). */
const decodeChange = decoderOf<Partial<TodoMembers>>({
  title: optional(text),
  completed: optional(flag),
});

type TodoDeps = Pick<HandlerDeps, 'store' | 'records' | 'config'>;

export function createTodoHandlers({ store, records, config }: TodoDeps) {
  const { bodyBytesMax, publicUrl } = config;
  const { todos } = store;
  const get = (request: HttpRequest): Promise<Todo> => getRecord(store, request, route);
  const created = records.created(route);
  return {
    list: (request) => records.list(request, route),
    find: records.find(route),

    create: async (request) => {
      const { title, completed = false } = await readJson(request, bodyBytesMax, decodeTodo);
      const { id } = await todos.create({ title, completed });
      // PUBLIC_URL tells whether a proxy terminates TLS; request headers are not trusted (R12).
      const base = publicUrl || `http://${request.host}`;
      return created(request, id, `${base}/api/todos/${id}`);
    },
    patch: async (request) => {
      await get(request);
      const change = await readMergePatch(request, bodyBytesMax, decodeChange);
      return changeRecord(request, { get, toJson }, (id, expected) =>
        todos.update(id, change, { expected }),
      );
    },
    remove: (request) =>
      changeRecord(request, { get, toJson }, (id, expected) => todos.remove(id, { expected })),
  } satisfies Readonly<Record<string, Handler>>;
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
