/** Where stores of uploads keep their index, and how each is opened in a test. */

import assert from 'node:assert/strict';
import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createIdSource } from '../../dist/domain/ids.js';
import type { DurableFileIndex, FileLimits } from '../../dist/store/file-index.js';
import { openUploads, type OpenUploadsOptions } from '../../dist/store/files/open.js';
import type { Uploads } from '../../dist/store/files/uploads.js';
import type { Store } from '../../dist/store/store.js';
import { pluck, times } from '../support/lists.ts';
import { durableStores, openOn, type StorePlace } from '../support/stores.ts';
import { createDirectory, openUploads as openRun } from '../support/uploads.ts';

type Bounds = Partial<Pick<OpenUploadsOptions, 'filesMax' | 'bytesMax'>>;

export interface UploadPlace extends Pick<StorePlace, 'name' | 'skip'> {
  readonly isDurable: boolean;
  /** Closed and gone with the test; as many of `nodes` on one index as the place can have. */
  open(context: TestContext, more?: Bounds & { readonly nodes?: number }): Promise<OpenPlace>;
}

interface OpenPlace {
  /** Two of one index and one folder, or one twice where the place has one. */
  readonly one: Uploads;
  readonly other: Uploads;
  readonly directory: string;
  /** Names of files on disk. */
  list(): Promise<string[]>;
}

export interface DurableOptions extends Bounds {
  readonly directory: string;
  /** What stands between the store of uploads and the index. */
  readonly wrap?: (index: DurableFileIndex) => DurableFileIndex;
}

/** Closed with the test. */
export async function openDurable(
  { openFileIndex, requests }: Pick<Store, 'openFileIndex' | 'requests'>,
  context: TestContext,
  { wrap = (index): DurableFileIndex => index, ...options }: DurableOptions,
) {
  assert.ok(openFileIndex);
  const logged: [string, Readonly<Record<string, unknown>>][] = [];
  const uploads = await openUploads({
    filesMax: 100,
    bytesMax: 1_000_000_000,
    createName: createIdSource(() => new Date()),
    openIndex: (limits: FileLimits) => wrap(openFileIndex(limits)),
    requests,
    log: (_level, event, facts = {}) => logged.push([event, facts]),
    ...options,
  });
  context.after(() => uploads.close());
  return { uploads, logged };
}

/** Names of files on disk in the folder that outlives a run. */
export async function listDurable(directory: string): Promise<string[]> {
  return (await readdir(join(directory, 'inkwell-files'))).filter((name) => name !== 'id');
}

/** As if every file were so old; by default a minute older than a day. */
export async function ageAll(directory: string, minutes = 24 * 60 + 1): Promise<void> {
  const seconds = Date.now() / 1_000 - minutes * 60;
  for (const name of await listDurable(directory))
    await utimes(join(directory, 'inkwell-files', name), seconds, seconds);
}

const inRun: UploadPlace = {
  name: 'in a folder of the run',
  skip: false,
  isDurable: false,
  async open(context, bounds) {
    const { uploads, ...place } = await openRun(context, bounds);
    return { one: uploads, other: uploads, ...place };
  },
};

const durablePlaces = durableStores.map(({ name, skip, newUrl }): UploadPlace => ({
  name: `with its index ${name}`,
  skip,
  isDurable: true,
  async open(context, { nodes = 2, ...bounds } = {}) {
    const directory = await createDirectory(context);
    const url = await newUrl(context);
    const opened = await Promise.all(
      times(name === 'on PostgreSQL' ? nodes : 1).map(async () =>
        openDurable(await openOn(context, url), context, { directory, ...bounds }),
      ),
    );
    const [one = assert.fail(), ...others] = pluck(opened, 'uploads');
    return { one, other: others.at(-1) ?? one, directory, list: () => listDurable(directory) };
  },
}));

export const uploadPlaces: readonly UploadPlace[] = [inRun, ...durablePlaces];
