/** Todos in PostgreSQL, in the order they came (R2). */

import type { Todo } from '../model.ts';
import { toTodo, toTodoRow } from '../rows.ts';
import type { Todos } from '../store.ts';
import type { PostgresContext } from './pool.ts';

export function createTodos({ pool, createId }: PostgresContext): Todos {
  return {
    list: () =>
      pool.readAll(
        (sql) => sql`SELECT id, title, completed FROM inkwell.todos ORDER BY seq`,
        toTodo,
      ),
    find: (id) =>
      pool.readOne(
        (sql) => sql`SELECT id, title, completed FROM inkwell.todos WHERE id = ${id}`,
        toTodo,
      ),
    async create({ title, completed }) {
      const todo: Todo = { id: createId(), title, completed };
      await pool.write((sql) => sql`INSERT INTO inkwell.todos ${sql(toTodoRow(todo))}`);
      return todo;
    },
  };
}
