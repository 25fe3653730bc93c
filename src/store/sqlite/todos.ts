/** Todos in SQLite, in the order they came (R2). */

import type { Row } from './database.ts';
import type { SqliteContext } from './writes.ts';
import type { Todo } from '../model.ts';
import type { Todos } from '../store.ts';
import { escapeText, unescapeText } from '../text-escape.ts';

export function createTodos({ database, writes, createId }: SqliteContext): Todos {
  const list = database.prepare('SELECT id, title, completed FROM todos ORDER BY seq');
  const find = database.prepare('SELECT id, title, completed FROM todos WHERE id = ?');
  const insert = database.prepare('INSERT INTO todos (id, title, completed) VALUES (?, ?, ?)');
  return {
    list: () => list.all().map(toTodo),
    find(id) {
      const row = find.get(id);
      return row && toTodo(row);
    },
    create({ title, completed }) {
      return writes.run(() => {
        const todo: Todo = { id: createId(), title, completed };
        insert.run(todo.id, escapeText(title), Number(completed));
        return todo;
      });
    },
  };
}

function toTodo(row: Row): Todo {
  return {
    id: String(row['id']),
    title: unescapeText(String(row['title'])),
    completed: row['completed'] === 1,
  };
}
