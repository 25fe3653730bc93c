/** The rule for texts of posts, comments and todos (R8). */

/** True for text of only white space, as defined by `\s` and `trim`. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}
