import { createServer } from '../../dist/store/postgres/client/connection.js';
import { migrate } from '../../dist/store/postgres/schema.js';

/** Makes the tables as a build with so many steps did. */
export async function migrateTo(url: string, steps: number): Promise<void> {
  const connection = await (await createServer(url)).connect({ statementSeconds: 60 });
  await migrate(connection, () => undefined, steps);
  connection.end();
}
