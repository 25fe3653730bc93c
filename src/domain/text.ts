/** Texts of posts, comments and todos (R8). */

/** True for text of nothing but white space: Unicode's, as `\s` and `trim` know it. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}
