/** For a topic whose values are counted and not weighed. */
export const unweighed = { queueBytesMax: 0, bytesOf: (): number => 0 };
