/** A connection of another program to PostgreSQL, through `pg`: for tests and benches. */

import { hash } from 'node:crypto';
import { Client, type QueryResult } from 'pg';
import { type Parameter, sql } from '../../dist/store/postgres/client/connection.js';
import type { Ending } from './server.ts';

/** An integer of 8 bytes is a string, a time a Date. */
type Cells = Record<string, unknown>;

export interface Session {
  /** One statement, prepared; the values in the template become parameters. */
  <T extends object = Cells>(
    texts: TemplateStringsArray,
    ...values: readonly Parameter[]
  ): Promise<readonly T[]>;
  /** A text without parameters, also of several statements; the rows are those of the last. */
  run(text: string): Promise<readonly Cells[]>;
  /** Runs `act` in a transaction, which is rolled back if it fails. */
  begin<T>(act: () => Promise<T>): Promise<T>;
  /** Cuts off what still runs. */
  end(): Promise<void>;
}

/** The caller ends it. */
export function connect(url: string): Session {
  const client = new Client({ connectionString: url });
  const connected = client.connect();
  connected.catch(() => undefined); // each statement reports it
  client.on('error', () => undefined); // as the next statement does
  const run = async (text: string): Promise<readonly Cells[]> => {
    await connected;
    // Of several statements there are several results, which the types do not know.
    const results: unknown = await client.query<Cells>(text);
    return ([results].flat().at(-1) as QueryResult<Cells>).rows;
  };
  const ask = async <T extends object>(
    texts: TemplateStringsArray,
    ...values: readonly Parameter[]
  ): Promise<readonly T[]> => {
    await connected;
    const { text, values: given } = sql(texts, ...values);
    const statement = { name: hash('sha1', text), text, values: [...given] };
    return (await client.query<T & Cells>(statement)).rows;
  };
  return Object.assign(ask, {
    run,
    async begin<T>(act: () => Promise<T>): Promise<T> {
      await run('BEGIN');
      try {
        const result = await act();
        await run('COMMIT');
        return result;
      } catch (error) {
        await run('ROLLBACK');
        throw error;
      }
    },
    async end() {
      await connected.catch(() => undefined);
      await client.end();
    },
  });
}

/** Ended with the test. */
export function openSession(context: Ending, url: string): Session {
  const session = connect(url);
  context.after(() => session.end());
  return session;
}
