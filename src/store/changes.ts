/**
 * Counts changes by place, so that a response is current while nothing that it was made from has
 * changed.
 *
 * 1. A change counts at three places: that of its area, of its record, and of its owner's list.
 * 2. A reader notes the places of what it reads, before it reads, and the sum of their counts.
 * 3. Counts only grow: while the sum is the same, so is each of them, and so is what was read.
 *
 * A place is a hash. Two records that share one make a response out of date now and then although
 * it is not, but never the other way round; and nothing grows with the data.
 *
 *     comment c of post p is added: comments, comments/c and comments/p are counted
 *     GET /posts/p/comments has noted posts/p and comments/p: it is made again
 *     GET /posts/q/comments has noted posts/q and comments/q: it is current
 */

/** Their indexes are their places. */
const areas = ['posts', 'comments', 'authors', 'todos', 'articles'] as const;
/** A part of the records that is written separately: every driver has a table for each. */
export type Area = (typeof areas)[number];
/** The place that every reader notes. */
const everything = areas.length;
/** The first place of records and lists. */
const start = everything + 1;
/** The number of these: a power of two. */
const hashedPlaces = 65_536;

type Id = string | number;

export function isArea(table: string): table is Area {
  return areas.includes(table as Area);
}

export class Changes {
  readonly #counts = new Uint32Array(start + hashedPlaces);

  /** `id`: of a record, or of the owner of a list; default: all records of the area. */
  placeOf(area: Area, id?: Id): number {
    let hash: number = areas.indexOf(area);
    if (id === undefined) return hash;
    const text = String(id);
    for (let at = 0; at < text.length; at += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93); // FNV-1a
    }
    return start + ((hash ^ (hash >>> 16)) & (hashedPlaces - 1));
  }

  /** A change of a record that belongs to an owner, or to none. */
  count(area: Area, id: Id, owner?: Id | null): void {
    this.#add(this.placeOf(area));
    this.#add(this.placeOf(area, id));
    if (owner != null) this.#add(this.placeOf(area, owner));
    // The comments of a post are removed with it, by some databases without a word.
    if (area === 'posts') this.#add(this.placeOf('comments', id));
  }

  /** Nobody knows what was changed. */
  countEverything(): void {
    this.#add(everything);
  }

  at(place: number): number {
    return this.#counts[place] as number; // a place is within
  }

  /** The sum of the counts of these places, and of everything. */
  sumOf(places: readonly number[]): number {
    let sum = this.at(everything);
    for (const place of places) sum += this.at(place);
    return sum;
  }

  #add(place: number): void {
    this.#counts[place] = this.at(place) + 1;
  }
}
