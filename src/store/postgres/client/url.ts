/**
 * `STORE_URL=postgres://…` as libpq reads it: what it does not know is refused by name, since a
 * misspelt `sslmode` would connect without TLS.
 */

/** The values that a parameter may have; null: any. */
const parameters: Readonly<Record<string, RegExp | null>> = {
  host: null,
  port: null,
  user: null,
  password: null,
  application_name: null,
  client_encoding: null,
  options: null,
  sslcert: null,
  sslkey: null,
  sslrootcert: null,
  sslmode: /^(?:disable|prefer|require|verify-ca|verify-full)$/,
  sslnegotiation: /^(?:postgres|direct)$/,
  channel_binding: /^(?:disable|prefer|require)$/,
  // JDBC's and libpq's other name of `sslmode`.
  ssl: /^(?:true|1)$/,
  // What this program does by itself, or what has no effect on one host.
  connect_timeout: null,
  keepalives: /^1$/,
  keepalives_idle: null,
  keepalives_interval: null,
  keepalives_count: null,
  target_session_attrs: /^(?:any|read-write|primary)$/,
  gssencmode: /^(?:disable|prefer)$/,
  // This program's own, and what other programs call it.
  prepare: /^(?:true|false)$/,
  pgbouncer: /^(?:true|false)$/,
};

/** `…//user:password@host` with more than one host, which libpq tries one after the other. */
const severalHosts = /^[^/]*\/\/(?:[^/?#]*@)?[^/?#]*,/;

export interface ReadUrl {
  /** What the package gets. */
  readonly text: string;
  /** Decoded: the package leaves the escapes of `?`, `#` and others in it. */
  readonly database: string;
  /**
   * False with `?prepare=false`: as behind PgBouncer in transaction mode, each statement may run in
   * another session, so that session settings and LISTEN have no effect.
   */
  readonly hasSessions: boolean;
}

/** Throws an Error that does not repeat what may be a part of a password. */
export function readUrl(url: string): ReadUrl {
  if (severalHosts.test(url)) {
    throw new Error(
      'it names several hosts, and has to name one: an address, a proxy or a name that leads to ' +
        'the primary.',
    );
  }
  if (url.includes('#')) throw new Error('it has a #, which a password has as %23.');
  const [base = '', ...rest] = url.split('?');
  const given = new URLSearchParams(rest.join('?'));
  for (const [name, value] of given) {
    const form = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (form === undefined || given.getAll(name).length > 1) {
      const shown = /^[\w-]{1,40}$/.test(name) ? `the parameter ${name}` : 'a parameter';
      throw new Error(`it has ${shown}${form === undefined ? ', which is unknown' : ' twice'}.`);
    }
    if (form?.test(value) === false) throw new Error(`its ${name} has an unknown value.`);
  }
  const hasSessions = given.get('prepare') !== 'false' && given.get('pgbouncer') !== 'true';
  const root = given.get('sslrootcert');
  const isBound = given.get('channel_binding') === 'require';
  // The package cannot require channel binding. A verified certificate excludes the same attack.
  if (isBound || root === 'system') given.set('sslmode', 'verify-full');
  if (root === 'system') given.delete('sslrootcert');
  if (given.has('ssl') && !given.has('sslmode')) given.set('sslmode', 'verify-full');
  for (const name of ['ssl', 'prepare', 'pgbouncer']) given.delete(name);
  // Otherwise the package verifies the certificate for every mode but `disable`.
  given.set('uselibpqcompat', 'true');
  const [, path = ''] = /^[^/]*\/\/[^/]*\/(.*)$/.exec(base) ?? [];
  return { text: `${base}?${given.toString()}`, database: decodeURIComponent(path), hasSessions };
}
