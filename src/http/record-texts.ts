/** JSON texts of records, each made once for as long as the record is the same object. */

/** The text of a record, an object, in lists: `toJson` is the same one for all of its kind. */
export type RecordText = <T>(record: T, toJson: (record: T) => string) => string;

/** A place in a weak map, and what stands before a text. */
const placeBytes = 100;

/**
 * Remembers texts of up to `bytesMax` bytes together and then starts anew. Only for records that a
 * store keeps as they are: one that is read anew is another object each time.
 */
export function createRecordTexts(bytesMax: number): RecordText {
  let texts = new WeakMap<object, string>();
  let bytes = 0;
  return (given, toJson) => {
    const record = given as object; // no record is anything else
    const known = texts.get(record);
    if (known !== undefined) return known;
    const text = toJson(given);
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
