/** Todos over REST (Spec §4.5, R12, R13). */

import type { Config } from '../config.ts';
import { toId } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import { listReply } from '../http/json-list.ts';
import { readJson } from '../http/json.ts';
import { emptyReply, type Handler, jsonReply } from '../http/message.ts';
import { andThen } from '../maybe-promise.ts';
import type { Todo } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import { decodeTodo } from './input.ts';

export interface TodoHandlers {
  readonly list: Handler;
  readonly create: Handler;
  readonly find: Handler;
}

export interface TodoDeps {
  readonly store: Store;
  readonly config: Pick<Config, 'bodyBytesMax' | 'publicUrl'>;
}

export function createTodoHandlers({ store, config }: TodoDeps): TodoHandlers {
  const { todos } = store;
  return {
    list: () => andThen(todos.list(), (all) => listReply(all, toJson)),

    async create(request) {
      const todo = await todos.create(decodeTodo(await readJson(request, config.bodyBytesMax)));
      // A proxy that ends TLS is told to us by PUBLIC_URL, never by a header (R12).
      const base = config.publicUrl || `http://${request.host}`;
      return emptyReply(201, ['Location', `${base}/api/todos/${todo.id}`]);
    },

    async find(request) {
      const id = toId(request.params['id'] ?? '');
      const todo = id === undefined ? undefined : await todos.find(id);
      if (todo === undefined) throw new AppError('not_found', 'There is no todo with this id.');
      return jsonReply(200, todo);
    },
  };
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
