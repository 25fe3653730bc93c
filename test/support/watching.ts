import { randomUUID } from 'node:crypto';
import type { Store } from '../../dist/store/store.js';

/**
 * Resolves when what watches these nodes hears of comments of all nodes: a node stores none before
 * that, and looks for the post of one only then.
 */
export async function watching(nodes: readonly Store[]): Promise<void> {
  await Promise.all(nodes.map(async (node) => node.comments.add(randomUUID(), '')));
}
