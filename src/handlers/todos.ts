/** Todos over REST (Spec §4.5, R12, R13). */

import type { Config } from '../config.ts';
import { toId } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import type { AnswerCache } from '../http/answer-cache.ts';
import { taggedReply } from '../http/etag.ts';
import type { ReplyWithList } from '../http/json-list.ts';
import { type ListRoute, replyWithList } from '../http/list-pages.ts';
import { readJson } from '../http/json.ts';
import { emptyReply, type Handler } from '../http/message.ts';
import { andThen } from '../maybe-promise.ts';
import type { Todo } from '../store/model.ts';
import type { Reading } from '../store/reading.ts';
import type { Store } from '../store/store.ts';
import { decodeTodo } from './input.ts';

export interface TodoDeps {
  readonly store: Store;
  readonly answers: AnswerCache<Reading>;
  readonly listReply: ReplyWithList<Reading>;
  readonly config: Pick<Config, 'bodyBytesMax' | 'publicUrl'>;
}

export type TodoHandlers = Readonly<Record<'list' | 'create' | 'find', Handler>>;

export function createTodoHandlers(deps: TodoDeps): TodoHandlers {
  const { store, answers, listReply, config } = deps;
  const all: ListRoute<Reading, Todo> = {
    key: 'GET /api/todos',
    list: (records) => records.todos.all,
    toJson,
    toId,
  };
  return {
    list: (request) => replyWithList(request, listReply, all),

    async create(request) {
      const todo = await store.todos.create(
        decodeTodo(await readJson(request, config.bodyBytesMax)),
      );
      // PUBLIC_URL says that a proxy ends TLS; a header never does (R12).
      const base = config.publicUrl || `http://${request.host}`;
      return emptyReply(201, ['Location', `${base}/api/todos/${todo.id}`]);
    },

    find(request) {
      const id = toId(request.params['id'] ?? '');
      if (id === undefined) throw noTodo();
      return answers.get(`GET /api/todos/${id}`, ({ todos }, keep) =>
        andThen(todos.find(id), (todo) => {
          if (todo === undefined) throw noTodo();
          return keep(taggedReply(toJson(todo)));
        }),
      );
    },
  };
}

function noTodo(): AppError {
  return new AppError('not_found', 'There is no todo with this id.');
}

function toJson({ id, title, completed }: Todo): string {
  return JSON.stringify({ id, title, completed });
}
