/**
 * Counts changes by slot, so that a response is current while nothing that it was made from has
 * changed.
 *
 * 1. A change counts at three slots: that of its area, of its record, and of its owner's list.
 * 2. A reader notes the slots of what it reads, before it reads, and the sum of their counts.
 * 3. Counts only grow: while their sum is the same, so is each count, and so is what was read.
 *
 * The slot of a record is a hash of its id. If two records share a slot, a change of one makes
 * responses with the other out of date, which costs time and is never wrong; in return, the counts
 * do not grow with the data.
 *
 *     comment c of post p is added: the slots comments, comments/c and comments/p are counted
 *     GET /posts/p/comments has noted posts/p and comments/p: its response is made again
 *     GET /posts/q/comments has noted posts/q and comments/q: its response is current
 */

/** The index of an area is its slot. */
const areas = ['posts', 'comments', 'authors', 'todos', 'articles', 'pending_comments'] as const;
/** A kind of records: every driver has a table for each. */
export type Area = (typeof areas)[number];
/** The slot that every reader notes. */
const everything = areas.length;
/** The first slot of records and lists. */
const start = everything + 1;
/** The number of slots of records and lists: a power of two. */
const hashedSlots = 65_536;

type Id = string | number;

export function isArea(table: string): table is Area {
  return areas.includes(table as Area);
}

export class Changes {
  readonly #counts = new Uint32Array(start + hashedSlots);

  /** The slot of an id, of a record or of the owner of a list; without an id, of the area. */
  slotOf(area: Area, id?: Id): number {
    let hash: number = areas.indexOf(area);
    if (id === undefined) return hash;
    const text = String(id);
    for (let at = 0; at < text.length; at += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93); // FNV-1a
    }
    return start + ((hash ^ (hash >>> 16)) & (hashedSlots - 1));
  }

  /** Counts a change of a record that belongs to an owner, or to none. */
  count(area: Area, id: Id, owner?: Id | null): void {
    this.#add(this.slotOf(area));
    this.#add(this.slotOf(area, id));
    if (owner != null) this.#add(this.slotOf(area, owner));
    // The comments of a post are removed with it, by some databases without a word.
    if (area === 'posts') this.#add(this.slotOf('comments', id));
  }

  /** Counts a change of which nobody knows what was changed. */
  countEverything(): void {
    this.#add(everything);
  }

  at(slot: number): number {
    return this.#counts[slot] as number; // every slot has a count
  }

  /** The sum of the counts of these slots, and of the slot of everything. */
  sumOf(slots: readonly number[]): number {
    let sum = this.at(everything);
    for (const slot of slots) sum += this.at(slot);
    return sum;
  }

  #add(slot: number): void {
    this.#counts[slot] = this.at(slot) + 1;
  }
}
