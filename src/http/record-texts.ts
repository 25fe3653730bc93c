/** JSON texts of records, each made once for as long as the record is the same object. */

/** A place in a weak map, and what stands before a text. */
const placeBytes = 100;

/**
 * `toJson`, which remembers texts of up to `bytesMax` bytes together and then starts anew. Only for
 * records that a store keeps as they are: one that is read anew is another object each time.
 */
export function rememberTexts<T extends object>(
  toJson: (record: T) => string,
  bytesMax: number,
): (record: T) => string {
  let texts = new WeakMap<T, string>();
  let bytes = 0;
  return (record) => {
    const known = texts.get(record);
    if (known !== undefined) return known;
    const text = toJson(record);
    const size = placeBytes + 2 * text.length;
    if (size > bytesMax) return text;
    bytes += size;
    // Texts of records that are gone count until then.
    if (bytes > bytesMax) {
      texts = new WeakMap();
      bytes = size;
    }
    texts.set(record, text);
    return text;
  };
}
