/** Caches the JSON texts of records, for as long as a record is the same object. */

/** Returns the text of a record in a list. `toJson` must be the same for all records of a type. */
export type ToText = <T>(record: T, toJson: (record: T) => string) => string;

/** Approximate memory of an entry without its text, in bytes. */
const placeBytes = 100;

/**
 * The cache is emptied when its texts exceed `bytesMax`. With 0 nothing is cached: for a store that
 * does not return the same object for a record until it changes.
 */
export function createRecordTexts(bytesMax: number): ToText {
  let texts = new WeakMap<object, string>();
  let bytes = 0;
  if (bytesMax === 0) return (record, toJson) => toJson(record);
  return (given, toJson) => {
    const record = given as object; // Every record is an object.
    const known = texts.get(record);
    if (known !== undefined) return known;
    const text = toJson(given);
    const size = placeBytes + 2 * text.length;
    if (size > bytesMax) return text;
    bytes += size;
    // Until then, texts of removed records are still counted.
    if (bytes > bytesMax) {
      texts = new WeakMap();
      bytes = size;
    }
    texts.set(record, text);
    return text;
  };
}
