/** Todos over REST (Spec §4.5, R12, R13). */

import { toId } from '../domain/ids.ts';
import { readJson } from '../http/json.ts';
import {
  emptyResponse,
  type Handler,
  type HttpRequest,
  type HttpResponse,
} from '../http/message.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/records.ts';
import type { Todo } from '../store/model.ts';
import type { TodoMembers } from '../store/store.ts';
import { decodeTodo, decodeTodoChange, type RecordDeps } from './input.ts';
import { changeRecord, readMergePatch } from './patches.ts';

const route: ListRoute<Todo> & RecordRoute<string, Todo> = {
  key: '/api/todos',
  noun: 'todo',
  list: ({ todos }) => todos.all,
  find: ({ todos }, id) => todos.find(id),
  toId,
  toJson,
};

export function createTodoHandlers(deps: RecordDeps) {
  const { store, records, config } = deps;
  const { todos } = store;
  return {
    list: (request) => records.list(request, route),
    find: records.find(route),

    create: async (request) => {
      const draft = await readJson(request, config.bodyBytesMax, decodeTodo);
      const todo = await todos.create(draft);
      // PUBLIC_URL tells whether a proxy terminates TLS; request headers are not trusted (R12).
      const base = config.publicUrl || `http://${request.host}`;
      return emptyResponse(201, ['Location', `${base}/api/todos/${todo.id}`]);
    },

    patch: async (request) => {
      await getTodo(request);
      const change = await readMergePatch(request, config.bodyBytesMax, decodeTodoChange);
      return changeTodo(request, (id, expected) => todos.update(id, change, expected));
    },

    remove: (request) => changeTodo(request, (id, expected) => todos.remove(id, expected)),
  } satisfies Readonly<Record<string, Handler>>;

  async function getTodo(request: HttpRequest): Promise<Todo> {
    return getFound(await todos.find(getId(request, route)), route.noun);
  }

  function changeTodo(request: HttpRequest, apply: Change): Promise<HttpResponse> {
    return changeRecord(request, {
      get: () => getTodo(request),
      toJson,
      apply: ({ id }, expected) =>
        apply(id, expected && { title: expected.title, completed: expected.completed }),
    });
  }
}

/** Returns false if the todo was deleted, or is not `expected` any more. */
type Change = (id: string, expected: TodoMembers | undefined) => MaybePromise<boolean>;

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
