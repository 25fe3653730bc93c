/** Todos over REST (Spec §4.5, R12, R13). */

import { toId } from '../domain/scalars.ts';
import { readJson } from '../http/json.ts';
import {
  emptyResponse,
  type Handler,
  type HttpRequest,
  type HttpResponse,
} from '../http/message.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/records.ts';
import type { Todo } from '../store/model.ts';
import type { TodoMembers } from '../store/store.ts';
import { decoderOf, flag, type HandlerDeps, optional, text } from './input.ts';
import { type Apply, changeRecord, readMergePatch } from './patches.ts';

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

export function createTodoHandlers(deps: HandlerDeps) {
  const { store, records, config } = deps;
  const { todos } = store;
  return {
    list: (request) => records.list(request, route),
    find: records.find(route),

    create: async (request) => {
      const { title, completed = false } = await readJson(request, config.bodyBytesMax, decodeTodo);
      const todo = await todos.create({ title, completed });
      // PUBLIC_URL tells whether a proxy terminates TLS; request headers are not trusted (R12).
      const base = config.publicUrl || `http://${request.host}`;
      return emptyResponse(201, ['Location', `${base}/api/todos/${todo.id}`]);
    },

    patch: async (request) => {
      await getTodo(request);
      const change = await readMergePatch(request, config.bodyBytesMax, decodeChange);
      return changeTodo(request, (id, expected) => todos.update(id, change, expected));
    },

    remove: (request) => changeTodo(request, (id, expected) => todos.remove(id, expected)),
  } satisfies Readonly<Record<string, Handler>>;

  async function getTodo(request: HttpRequest): Promise<Todo> {
    return getFound(await todos.find(getId(request, route)), route.noun);
  }

  function changeTodo(request: HttpRequest, apply: Apply<Todo>): Promise<HttpResponse> {
    return changeRecord(request, { get: () => getTodo(request), toJson, apply });
  }
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
