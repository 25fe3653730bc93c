/** Todos over REST (Spec §4.5, R12, R13). */

import { toId } from '../domain/ids.ts';
import { readJson } from '../http/json.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { andThen } from '../maybe-promise.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import type { Todo } from '../store/model.ts';
import type { TodoMembers } from '../store/store.ts';
import { changeRecord, readMergePatch } from './changes.ts';
import { decoderOf, flag, optional, text } from './decode.ts';
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
const decodeTodo = decoderOf<{ title: string; completed?: boolean }>({
  title: text,
  completed: optional(flag),
});

/** The members that a merge patch changes (R37). */
const decodeChange = decoderOf<Partial<TodoMembers>>({
  title: optional(text),
  completed: optional(flag),
});

type TodoDeps = Pick<HandlerDeps, 'store' | 'viewerOf' | 'records' | 'config'>;

export function createTodoHandlers({ store, viewerOf, records, config }: TodoDeps) {
  const { bodyBytesMax, publicUrl } = config;
  const { todos } = store;
  const get = async (request: HttpRequest): Promise<Todo> =>
    getFound(await todos.find(getId(request, route)), route.noun);
  const find = records.find(route);
  const created = records.created(route, () => undefined);
  const changed = { get, toJson, viewerOf, store };
  return {
    list: (request) => records.list(request, undefined, route),
    find: (request) => find(request, undefined),

    create: async (request) => {
      const { title, completed = false } = await readJson(request, bodyBytesMax, decodeTodo);
      const todo = await todos.create({ title, completed }, await findOnce(request, viewerOf));
      // PUBLIC_URL tells whether a proxy terminates TLS; request headers are not trusted (R12).
      const base = publicUrl || `http://${request.host}`;
      const response = created(request, todo.id, `${base}/api/todos/${todo.id}`);
      return andThen(response, (made) => toWritten(made, todo));
    },
    patch: async (request) => {
      const refuse = async (error: unknown): Promise<never> => {
        // If the todo does not exist, 404 comes before any fault of the body.
        await get(request);
        throw error;
      };
      const change = await readMergePatch(request, bodyBytesMax, decodeChange).catch(refuse);
      return changeRecord(request, changed, (id, options) => todos.update(id, change, options));
    },
    remove: (request) => changeRecord(request, changed, (id, options) => todos.remove(id, options)),
  } satisfies Readonly<Record<string, Handler>>;
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
