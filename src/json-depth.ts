/** How deep JSON may be nested, in a body and in what a patch makes of a document (R10). */

/** `JSON.stringify` fails near 5,000 levels: what is stored must stay far below. */
export const jsonDepthMax = 64;
