/**
 * Connections to PostgreSQL. Only this file knows the package (checked with pg 8.23).
 *
 * A text is prepared once on each connection, under a name that is its digest: behind a pooler one
 * session may serve several nodes, also of several versions, and a name never means two texts.
 */

import { hash } from 'node:crypto';
import type pg from 'pg';
import { toReason } from '../../../errors.ts';
import type { Log } from '../../../log.ts';
import type { Cells, Row, Value } from '../../sql/rows.ts';
import type { UrlSetting } from '../../store.ts';
import { isPreparedElsewhere, isRefusedLogin } from './faults.ts';
import { readUrl } from './url.ts';

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

export type Clients = pg.Pool;
export type Client = pg.PoolClient;

/** The rows of a statement; a cell is a text as the server sends it, or null. */
export type Result = Pick<pg.QueryArrayResult<Cells>, 'fields' | 'rows'>;
export type Connection = Awaited<ReturnType<Server['connect']>>;

interface ConnectOptions {
  /** Time limit of a statement at the server; its response may take a second more. */
  readonly statementSeconds: number;
  /** Called for each NOTIFY on a channel that the connection listens to. */
  readonly onNotification?: (payload: string) => void;
  /** Called when the connection, after it was made, is closed for any reason. */
  readonly onClosed?: () => void;
}

/** Resolves with the rows of a statement. */
export async function run(connection: Connection, statement: Statement): Promise<readonly Row[]> {
  return toRows(await connection.run(statement));
}

export function toRows({ fields, rows }: Result): readonly Row[] {
  return rows.map((cells) => Object.fromEntries(fields.map(({ name }, at) => [name, cells[at]])));
}

const connectMilliseconds = 5_000;
/** Time limit for waiting for a lock. */
const lockMilliseconds = 1_000;
/** A transaction of a node that stops holds its locks for so long. */
const idleInTransactionMilliseconds = 5_000;
/** Networks forget a connection without traffic, some after four minutes, and tell nobody. */
const keepAliveMilliseconds = 30_000;
/** So connections that nobody needs end. `idleTimeoutMillis` would set a timer at each release. */
const lifetimeSeconds = 300;

/**
 * The driver was written for statements that see each other's commits. One plan for all values is
 * made per connection: the server estimates plans for single values as cheaper, and would plan each
 * execution again, which doubles the work of reading a page. Such a plan looks expensive over a
 * million rows: PostgreSQL would compile it (JIT) for 4 ms, to run it for 0.1 ms. Sessions that the
 * server ends are met by requests; before version 14 it ended none.
 */
const session = `SET default_transaction_isolation = 'read committed';
  SET plan_cache_mode = force_generic_plan; SET jit = off;
  SET idle_in_transaction_session_timeout = ${idleInTransactionMilliseconds};
  SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout';
  SELECT pg_backend_pid() AS pid`;

/** Loads the package. Throws an Error of one line that names the setting. */
export async function createServer(
  url: string,
  setting: UrlSetting = 'STORE_URL',
  readAgain?: (setting: UrlSetting) => string,
): Promise<Server> {
  const { default: found } = await import('pg').catch((cause: unknown) => {
    throw new Error(`${setting}: postgres:// needs one more package: npm install pg`, { cause });
  });
  try {
    return new Server(found, { setting, url, readAgain });
  } catch (error) {
    // The reason does not repeat the URL, which may contain a password.
    throw new Error(`${setting}: ${toReason(error)}`, { cause: error });
  }
}

interface ServerOptions {
  readonly setting: UrlSetting;
  readonly url: string;
  readonly readAgain?: ((setting: UrlSetting) => string) | undefined;
}

/** A database server, at one address. */
export class Server {
  /** Which names it. */
  readonly setting: UrlSetting;
  /** Host and port, for the log. */
  readonly address: string;
  /** False if each statement may run in another session: nothing is prepared or set then. */
  hasSessions: boolean;
  #url: string;
  readonly #readAgain: ServerOptions['readAgain'];
  readonly #pg: typeof pg;
  readonly #Client: new (options?: pg.ClientConfig) => pg.Client;
  /** The name of each text. */
  readonly #names = new Map<string, string>();
  readonly #processes = new WeakMap<pg.ClientBase, number>();

  constructor(found: typeof pg, { setting, url, readAgain }: ServerOptions) {
    this.#pg = found;
    this.setting = setting;
    this.#url = url;
    this.#readAgain = readAgain;
    this.hasSessions = readUrl(url).hasSessions;
    const toOptions = this.#toOptions.bind(this);
    this.#Client = class extends found.Client {
      constructor(options: pg.ClientConfig = {}) {
        const given = toOptions(options);
        super(given);
        // The package leaves the escapes of `?`, `#` and others in the name.
        const parameters: unknown = Reflect.get(this, 'connectionParameters');
        if (given.database) Object.assign(parameters ?? {}, { database: given.database });
        // The package would verify a certificate for `localhost` if the host is an address.
        const tls: unknown = this.ssl;
        if (typeof tls === 'object') Object.assign(tls ?? {}, { host: this.host });
        // A lost connection also ends; the error of a statement goes to its caller.
        this.on('error', () => undefined);
      }
    };
    const { host, port } = new this.#Client();
    this.address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  }

  /** Connections are opened when they are needed, and closed at the end of their lifetime. */
  createPool(max: number, statementSeconds: number): pg.Pool {
    const pool = new this.#pg.Pool({
      Client: this.#Client,
      max,
      idleTimeoutMillis: 0,
      maxLifetimeSeconds: lifetimeSeconds,
      statement_timeout: statementSeconds * 1000,
      onConnect: (client): unknown => this.#prepare(client),
    });
    return pool.on('error', () => undefined);
  }

  async connect({ statementSeconds, onNotification, onClosed }: ConnectOptions) {
    const milliseconds = statementSeconds * 1000;
    const limits = { statement_timeout: milliseconds, query_timeout: milliseconds + 1_000 };
    const client = new this.#Client(limits);
    client.on('notification', ({ payload }) => onNotification?.(payload ?? ''));
    try {
      await client.connect();
      await this.#prepare(client);
    } catch (error) {
      void client.end();
      this.learnRefusal(error);
      throw error;
    }
    client.once('end', () => onClosed?.());
    return {
      run: (statement: Statement) => this.ask(client, statement),
      /** Runs several statements without parameters as one transaction. */
      runScript: async (text: string) => void (await client.query(text)),
      /** Closes the connection. A statement under way fails. */
      end: () => void client.end(),
    };
  }

  ask(client: pg.ClientBase, { text, values }: Statement): Promise<Result> {
    const name = this.#names.get(text) ?? hash('sha1', text);
    this.#names.set(text, name);
    return client.query<Cells, Parameter[]>({
      text,
      values: [...values],
      rowMode: 'array',
      ...(this.hasSessions && { name }),
    });
  }

  /** The process of the server that serves a connection, if that is known. */
  processOf(client: pg.ClientBase): number | undefined {
    return this.#processes.get(client);
  }

  /** True if the error says that sessions are shared, so that nothing is prepared from now on. */
  learn(error: unknown, log: Log): boolean {
    if (!isPreparedElsewhere(error)) return false;
    const advice = 'STORE_URL should have ?prepare=false';
    if (this.hasSessions) log('warn', 'database pooler in transaction mode', { advice });
    this.hasSessions = false;
    return true;
  }

  /** Reads the URL again, for the next connection, if this one's login was refused. */
  learnRefusal(error: unknown): void {
    if (isRefusedLogin(error)) this.#url = this.#readAgain?.(this.setting) || this.#url;
  }

  /** The files that the URL names are read for each connection. */
  #toOptions({ statement_timeout, ...options }: pg.ClientConfig): pg.ClientConfig {
    const { text: connectionString, database } = readUrl(this.#url);
    return {
      ...options,
      connectionString,
      database,
      application_name: 'inkwell',
      enableChannelBinding: true,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMilliseconds,
      connectionTimeoutMillis: connectMilliseconds,
      types: { getTypeParser: () => (cell: unknown) => cell },
      ...(this.hasSessions && { statement_timeout, lock_timeout: lockMilliseconds }),
    };
  }

  async #prepare(client: pg.ClientBase): Promise<void> {
    if (!this.hasSessions) return;
    const query = { text: session, query_timeout: connectMilliseconds };
    // Of several statements there are several results, which the types do not know.
    const results: unknown = await client.query(query);
    const [row] = ([results].flat().at(-1) as pg.QueryResult<{ pid: string }>).rows;
    this.#processes.set(client, Number(row?.pid));
  }
}
