/** The limits of what one request, batch or event may ask for, and take while it is made. */

import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { MemoryPool } from '../memory-pool.ts';
import { RequestError, toRefusal } from './errors.ts';
import { createPlaces, createShapes } from './weight.ts';

/** A result at most (R39), unless a quarter of the memory for all requests is less. */
const resultBytesMax = 4 * 1024 * 1024;
/** Records of a result that asks for few of their fields. */
const recordBytesMax = 16 * 1024 * 1024;
/** Operations with many objects that may go on at a time when their store answers later. */
const largeMax = 4;

export type ContextLimits = ReturnType<typeof createContextLimits>;

/** `pool` reserves the memory of a result in use. Absent for events: only one is made at a time. */
export function createContextLimits(
  {
    graphqlObjectsMax,
    requestMemoryBytesMax,
  }: Pick<Config, 'graphqlObjectsMax' | 'requestMemoryBytesMax'>,
  pool?: MemoryPool,
) {
  const share = Math.floor(requestMemoryBytesMax / 4);
  return {
    objects: graphqlObjectsMax,
    /** For the results, and for their JSON. */
    bytes: Math.min(resultBytesMax, share),
    /** For records that were read for this request alone. */
    recordBytes: Math.min(recordBytesMax, share),
    pool,
    shapeOf: createShapes(),
    places: createPlaces(largeMax),
  };
}

/** The error of a request that asks for too much. */
export function tooMuch({ objects, bytes, recordBytes }: ContextLimits): RequestError {
  const message =
    `The request asks for more than ${objects} objects, ${bytes} bytes, or ${recordBytes} bytes ` +
    'of records; ask for less at a time, with `first` and `after`.';
  return new RequestError([toRefusal(new AppError('content_too_large', message))]);
}

/** The error of what a store answers when the operation has ended: nobody gets it. */
export function hasEnded(): Error {
  return new Error('The operation has ended.');
}
