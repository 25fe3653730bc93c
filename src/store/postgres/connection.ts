/**
 * Connections to PostgreSQL. Only this file knows the package (checked with pg 8.23).
 *
 * A statement is prepared once on each connection, under a name that is the same on all of them.
 * Its messages leave in one piece; the next statement starts after `ReadyForQuery`:
 *
 *     columns unknown   Parse(s3, text) Bind(s3, values) Describe Execute Sync
 *     new connection    Parse(s3, text) Bind(s3, values)          Execute Sync
 *     otherwise                         Bind(s3, values)          Execute Sync
 *     without sessions  Parse('', text) Bind('', values) Describe Execute Sync
 *     the server        ParseComplete BindComplete RowDescription DataRow… CommandComplete
 *
 * The package's own `Query` with `rowMode: 'array'` describes the columns each time. With it,
 * `GET /posts/{id}` took 55 µs in place of 50, `postById` 163 (143), and a new comment 131 (103).
 */

import type pg from 'pg';
import { toReason } from '../../errors.ts';
import type { Cells, Row, Value } from '../sql/rows.ts';
import { createTimeLimit } from './time-limit.ts';

export interface Statement {
  /** One text for all executions: each connection prepares a text once, and keeps its plan. */
  readonly text: string;
  readonly values: readonly Parameter[];
}

/** A list becomes an array. */
export type Parameter = Value | readonly Value[];

/** The values in a template become parameters: ``sql`SELECT ${1}` ``. */
export function sql(texts: TemplateStringsArray, ...values: readonly Parameter[]): Statement {
  return { text: texts.reduce((before, next, at) => `${before}$${at}${next}`), values };
}

/** A database server, at one address. */
export type Server = Awaited<ReturnType<typeof createServer>>;
export type Connection = Awaited<ReturnType<Server['connect']>>;

interface ConnectOptions {
  /** Time limit of a statement at the server; its response may take a second more. */
  readonly statementSeconds: number;
  /**
   * Asked before the connection of a late statement is closed, with the process of the server, if
   * that is known: it is kept if this resolves with true within the second.
   */
  readonly isAtWork?: (processId: number | null) => Promise<boolean>;
  /** Called for each NOTIFY on a channel that the connection listens to. */
  readonly onNotification?: (payload: string) => void;
  /** Called when the connection, after it was made, is closed for any reason. */
  readonly onClosed?: () => void;
}

/** The rows of a statement; a cell is a text as the server sends it, or null. */
export interface Result {
  readonly columns: readonly string[];
  readonly cells: readonly Cells[];
}

/** `error`: of the server, the network or the package, if there is no result. */
type Done = (error: Error | undefined, result?: Result) => void;

/** Resolves with the rows of a statement. */
export function run(connection: Connection, statement: Statement): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    connection.run(statement, (error, result) =>
      result ? resolve(toRows(result)) : reject(error),
    );
  });
}

export function toRows({ columns, cells }: Result): readonly Row[] {
  return cells.map((values) => {
    const row: Record<string, unknown> = {};
    for (const [at, column] of columns.entries()) row[column] = values[at];
    return row;
  });
}

const connectMilliseconds = 5_000;
/** Time limit for waiting for a lock. */
const lockMilliseconds = 1_000;

/**
 * The driver was written for statements that are one transaction each (see `articles.ts`). One plan
 * for all values is made per connection: the server estimates plans for single values as cheaper,
 * and would plan each execution again, which doubles the work of reading a page. Such a plan looks
 * expensive over a million rows: PostgreSQL would compile it (JIT) for 4 ms, to run it for 0.1 ms.
 */
const session = `SET default_transaction_isolation = 'read committed';
  SET plan_cache_mode = force_generic_plan; SET jit = off`;

/** Loads the package. Throws an Error of one line that names STORE_URL. */
export async function createServer(url: string) {
  const { Client } = await importPackage();
  const withSessions = hasSessions(url);
  const planOf = createPlans(withSessions);
  const createClient = (statementSeconds: number): pg.Client => {
    const client = new Client({
      connectionString: readUrl(url).href,
      application_name: 'inkwell',
      enableChannelBinding: true,
      keepAlive: true,
      connectionTimeoutMillis: connectMilliseconds,
      ...(withSessions && {
        statement_timeout: statementSeconds * 1000,
        lock_timeout: lockMilliseconds,
      }),
    });
    // The package would verify a certificate for `localhost` if the host is an address.
    const tls: unknown = client.ssl;
    if (typeof tls === 'object') Object.assign(tls ?? {}, { host: client.host });
    return client;
  };
  const { host, port } = checked(() => createClient(1));
  return {
    /** Host and port, for the log. */
    address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    /** False if each statement may run in another session (see `hasSessions`). */
    hasSessions: withSessions,
    async connect({ statementSeconds, isAtWork, onNotification, onClosed }: ConnectOptions) {
      const client = createClient(statementSeconds) as Client;
      const { stream } = client.connection;
      const limit = createTimeLimit(stream, statementSeconds, () => isAtWork?.(client.processID));
      const end = (): void => {
        limit.stop();
        void client.end();
        // A dead peer would never close it.
        stream.end(() => stream.destroy());
      };
      // A lost connection also ends; the error of a statement goes to its caller.
      client.on('error', () => undefined);
      client.on('notification', ({ payload }) => onNotification?.(payload ?? ''));
      try {
        await client.connect();
        if (withSessions) await client.query(session);
        limit.stop();
      } catch (error) {
        end();
        throw error;
      }
      client.once('end', () => onClosed?.());
      return {
        /** One at a time. */
        run({ text, values }: Statement, done: Done): void {
          limit.start();
          const callback: Done = (error, result) => {
            limit.stop();
            done(error, result);
          };
          client.query(new Execution(planOf(text), values, callback));
        },
        /** Runs several statements without parameters as one transaction. */
        async runScript(text: string): Promise<void> {
          limit.start();
          await client.query(text).finally(() => limit.stop());
        },
        /** Closes the connection. A statement under way fails. */
        end,
      };
    },
  };
}

/** The package notes the process of the server that serves this connection. */
type Client = pg.Client & { readonly processID: number | null };

interface Plan {
  /** The name that the text is prepared under; empty: it is not prepared. */
  readonly name: string;
  readonly text: string;
  /** Undefined until its first execution. */
  columns?: readonly string[];
}

/** The prepared statements of a connection by name, as the package notes them. */
type Prepared = pg.Connection & { readonly parsedStatements: Readonly<Record<string, string>> };

/** The plan of each text, which has the same name on all connections. */
function createPlans(withSessions: boolean): (text: string) => Plan {
  const plans = new Map<string, Plan>();
  return (text) => {
    if (!withSessions) return { name: '', text };
    const plan = plans.get(text) ?? { name: `s${plans.size}`, text };
    plans.set(text, plan);
    return plan;
  };
}

/** One execution of a statement: its methods are called by the package, in the order above. */
class Execution implements pg.Submittable {
  /** The package notes name and text when the server has prepared them. */
  readonly name: string;
  readonly text: string;
  /** The package requires it. */
  readonly callback: Done;
  readonly #plan: Plan;
  readonly #values: readonly Parameter[];
  readonly #cells: Cells[] = [];

  constructor(plan: Plan, values: readonly Parameter[], callback: Done) {
    this.#plan = plan;
    this.#values = values;
    this.name = plan.name;
    this.text = plan.text;
    this.callback = callback;
  }

  /** Sends the messages of the extended query protocol, in one piece. */
  submit(connection: pg.Connection): void {
    const { name, text } = this;
    const { stream, parsedStatements } = connection as Prepared;
    stream.cork();
    if (!(name in parsedStatements)) connection.parse({ name, text, types: [] }, true);
    connection.bind({ statement: name, values: this.#values.map(toText) }, true);
    if (this.#plan.columns === undefined) connection.describe({ type: 'P' }, true);
    connection.execute(null, true);
    connection.sync();
    stream.uncork();
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#plan.columns = fields.map(({ name }) => name);
  }

  handleDataRow({ fields }: { readonly fields: Cells }): void {
    this.#cells.push(fields);
  }

  handleCommandComplete(): void {
    // A statement without rows is not described again.
    this.#plan.columns ??= [];
  }

  handleReadyForQuery(): void {
    this.callback(undefined, { columns: this.#plan.columns ?? [], cells: this.#cells });
  }

  handleError(error: Error): void {
    this.callback(error);
  }
}

/** A parameter as the server reads it. Ids and keys, which are longer than NULL, need no quotes. */
function toText(value: Parameter): string | null {
  if (typeof value !== 'object') return String(value);
  const escape = (item: Value): string =>
    /^[\w-]{5,}$/.test(String(item)) ? `${item}` : `"${String(item).replaceAll(/["\\]/g, '\\$&')}"`;
  return value && `{${value.map((item) => (item === null ? 'NULL' : escape(item))).join(',')}}`;
}

/** The files that a URL names are read for each connection. */
function checked(createClient: () => pg.Client): pg.Client {
  try {
    return createClient();
  } catch (error) {
    // The reason does not repeat the URL, which may contain a password.
    throw new Error(`STORE_URL: ${toReason(error)}`, { cause: error });
  }
}

async function importPackage(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (error) {
    const needed = 'postgres:// needs one more package: npm install pg';
    throw new Error(`STORE_URL: ${needed}`, { cause: error });
  }
}

/**
 * False with `?prepare=false`: as behind PgBouncer in transaction mode, each statement may run in
 * another session, so that session settings and LISTEN have no effect.
 */
export function hasSessions(url: string): boolean {
  return !/[?&]prepare=false(?:&|$)/.test(url);
}

/** `…//user:password@host` with more than one host, which libpq tries one after the other. */
const severalHosts = /^[^/]*\/\/(?:[^/?#]*@)?[^/?#]*,/;

/** Gives the parameters of TLS the meaning that they have for libpq. */
function readUrl(text: string): URL {
  if (severalHosts.test(text)) {
    throw new Error(
      'it names several hosts, and has to name one: an address, a proxy or a name that leads to ' +
        'the primary.',
    );
  }
  const url = new URL(text);
  const { searchParams } = url;
  const binding = searchParams.get('channel_binding');
  const root = searchParams.get('sslrootcert');
  // The package cannot require channel binding. A verified certificate excludes the same attack.
  if (binding === 'require' || root === 'system') searchParams.set('sslmode', 'verify-full');
  if (root === 'system') searchParams.delete('sslrootcert');
  // Otherwise the package verifies the certificate for every mode but `disable`.
  searchParams.set('uselibpqcompat', 'true');
  return url;
}
