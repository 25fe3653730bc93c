/** Todos in SQLite, in the order they came (R2). */

import type { Todo } from '../model.ts';
import { toTodo, toTodoRow } from '../rows.ts';
import type { Todos } from '../store.ts';
import { createInsert, createSelect } from './statements.ts';
import type { SqliteContext } from './writes.ts';

export function createTodos(context: SqliteContext): Todos {
  const { database, writes, createId } = context;
  const select = createSelect(database, 'todos', toTodo);
  const list = select('ORDER BY seq');
  const find = select('WHERE id = ?');
  const insert = createInsert(context, 'todos');
  return {
    list: () => list.all(),
    find: (id) => find.first(id),
    create: ({ title, completed }) =>
      writes.run(() => {
        const todo: Todo = { id: createId(), title, completed };
        insert(toTodoRow(todo));
        return todo;
      }),
  };
}
