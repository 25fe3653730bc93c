/** The thread that attacks: what it takes of a processor is not taken from the honest clients. */

import { workerData } from 'node:worker_threads';
import type { Target } from './attacks.ts';
import { memoryAttacks } from './memory-attacks.ts';
import { turnAttacks } from './turn-attacks.ts';

/** Given to the thread, which runs until it is terminated. */
export interface Attacked extends Target {
  readonly kind: keyof typeof kinds;
}

const kinds = { memory: memoryAttacks, turns: turnAttacks };

const { kind, ...target } = workerData as Attacked;
for (const attack of Object.values(kinds[kind])) void attack(target);
