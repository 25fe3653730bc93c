/** How large a JSON document may be: one that is received, and one that a patch makes. */

/** Levels (R10). `JSON.stringify` overflows the stack near 5,000. */
export const jsonDepthMax = 64;

/** Values and names of members (R39): `{},` is 3 bytes of text, and 64 in memory. */
export const jsonValuesMax = 50_000;
