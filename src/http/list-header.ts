/** Headers that are lists (RFC 9110 §5.6.1), parsed no further than anybody sends (R47). */

/** The members that are looked at: a head of 16 KiB could have thousands. */
export const membersMax = 32;

/** Text without a comma, and quoted strings (RFC 9110 §5.6.4), the last perhaps unclosed. */
const memberForm = /(?:[^",]+|"(?:[^"\\]|\\.)*"?)+/g;

/** Returns the first members of a list, in order, without the blanks around them. */
export function listMembers(header: string): readonly string[] {
  if (!header.includes('"')) return header.split(',', membersMax).map((member) => member.trim());
  // A comma in quotes ends no member.
  const members: string[] = [];
  for (const [member] of header.matchAll(memberForm)) {
    if (members.push(member.trim()) === membersMax) break;
  }
  return members;
}
