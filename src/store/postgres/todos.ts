/** Todos in PostgreSQL, in the order they came (R2). */

import type { Todo } from '../model.ts';
import type { Row } from './pool.ts';
import type { PostgresContext } from './rows.ts';
import type { Todos } from '../store.ts';
import { escapeText, unescapeText } from '../text-escape.ts';

export function createTodos({ pool, createId }: PostgresContext): Todos {
  return {
    list: () =>
      pool.readPages(
        (sql) => sql`SELECT id, title, completed FROM inkwell.todos ORDER BY seq`,
        toTodo,
      ),
    async find(id) {
      const [row] = await pool.read(
        (sql) => sql`SELECT id, title, completed FROM inkwell.todos WHERE id = ${id}`,
      );
      return row && toTodo(row);
    },
    async create({ title, completed }) {
      const todo: Todo = { id: createId(), title, completed };
      await pool.write(
        (sql) => sql`INSERT INTO inkwell.todos (id, title, completed)
          VALUES (${todo.id}, ${escapeText(title)}, ${completed})`,
      );
      return todo;
    },
  };
}

function toTodo(row: Row): Todo {
  return {
    id: String(row['id']),
    title: unescapeText(String(row['title'])),
    completed: row['completed'] === true,
  };
}
