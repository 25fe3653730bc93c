/** Todos over REST (Spec §4.5, R12, R13). */

import { toId } from '../domain/ids.ts';
import { readJson } from '../http/json.ts';
import { emptyResponse, type Handler } from '../http/message.ts';
import type { ListRoute, RecordRoute } from '../records/records.ts';
import type { Todo } from '../store/model.ts';
import { decodeTodo, type RecordDeps } from './input.ts';

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
  return {
    list: (request) => records.list(request, route),
    find: records.find(route),

    create: async (request) => {
      const draft = await readJson(request, config.bodyBytesMax, decodeTodo);
      const todo = await store.todos.create(draft);
      // PUBLIC_URL tells whether a proxy terminates TLS; request headers are not trusted (R12).
      const base = config.publicUrl || `http://${request.host}`;
      return emptyResponse(201, ['Location', `${base}/api/todos/${todo.id}`]);
    },
  } satisfies Readonly<Record<string, Handler>>;
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
