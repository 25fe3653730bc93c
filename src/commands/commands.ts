/** The commands by name. Each is loaded when it is used. */

import type { RunCommand } from './command.ts';

type LoadCommand = () => Promise<RunCommand>;

export const commands: ReadonlyMap<string, LoadCommand> = new Map<string, LoadCommand>([
  ['accounts', async () => (await import('./accounts.ts')).runAccounts],
  ['backup', async () => (await import('./store.ts')).runBackup],
  ['migrate', async () => (await import('./store.ts')).runMigrate],
]);
