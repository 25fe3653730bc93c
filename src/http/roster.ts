/**
 * Who is here now, for members that come and go with each request. A Set would be made anew every
 * few requests, and every one of these lists keeps the next one, with all its members, in memory
 * until the whole heap is swept; a member that knows its own place needs none.
 */

export interface Member {
  /** Where the roster has it; -1 where it has it not. Only the roster writes it. */
  place: number;
}

export class Roster<M extends Member> {
  readonly #members: M[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: M): void {
    if (member.place === -1) member.place = this.#members.push(member) - 1;
  }

  delete(member: M): void {
    const { place } = member;
    if (place === -1) return;
    const last = this.#members.pop();
    if (last !== undefined && last !== member) {
      this.#members[place] = last;
      last.place = place;
    }
    member.place = -1;
  }

  [Symbol.iterator](): IterableIterator<M> {
    return this.#members.values();
  }
}
