/**
 * `export`: writes the whole store to standard output, as it is at one moment, also while servers
 * use it. What is not taken from the output waits in no memory.
 */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readConfig } from '../config.ts';
import { codeOf } from '../errors.ts';
import { type Folder, openFolder } from '../store/files/open.ts';
import type { ListedFile } from '../store/file-index.ts';
import { readStore, startSeconds } from '../store/open.ts';
import type { WholeStore } from '../store/whole-store.ts';
import { type CommandContext, toLog, UsageError } from './command.ts';
import {
  endLine,
  header,
  type KindName,
  kinds,
  pieceBytes,
  toFileLine,
  toLine,
  toPieceLine,
} from './transfer.ts';

export async function runExport(args: readonly string[], context: CommandContext) {
  if (args.length > 0) throw new UsageError('usage: node dist/server.js export >store.jsonl');
  const {
    storeUrl,
    storeTimeoutSeconds: timeoutSeconds,
    uploadDir,
  } = readConfig(context.environment);
  const options = { log: toLog(context), startSeconds, timeoutSeconds };
  await readStore(storeUrl, options, async (store) => {
    const lines = Readable.from(readLines(store, uploadDir), {
      objectMode: true,
      highWaterMark: 1,
    });
    await pipeline(lines, context.output, { end: false });
  });
  return '';
}

/** Lines that are written at once have some more characters. */
const textLength = 65_536;

/** Yields some lines at once. */
async function* readLines(store: WholeStore, uploadDir: string): AsyncGenerator<string> {
  const articleCounter = await store.articleCounter();
  const files = await store.files.list();
  yield `${JSON.stringify({ ...header, articleCounter })}\n`;
  for (const name of Object.keys(kinds) as KindName[]) {
    for await (const page of store.pages(kinds[name].table)) {
      let text = '';
      for (const record of page) {
        text += toLine(name, record);
        if (text.length < textLength) continue;
        yield text;
        text = '';
      }
      if (text !== '') yield text;
    }
    if (name !== 'author' || files.length === 0) continue;
    if (uploadDir === '') throw new Error('UPLOAD_DIR is not set, and the store has files.');
    const folder = await openFolder(uploadDir, store.files);
    for (const file of files) yield* readFile(folder, file);
  }
  yield endLine;
}

/**
 * A file that is replaced or removed meanwhile stays on the disk for a day, or for less if many
 * are.
 */
async function* readFile(folder: Folder, file: ListedFile): AsyncGenerator<string> {
  const { storedName: name, size, owner } = file;
  yield toFileLine({ name, size, owner });
  const content = await folder.read(file).catch((error: unknown) => {
    const what = `The content of the file ${JSON.stringify(name)} cannot be read`;
    const why =
      codeOf(error) === 'ENOENT'
        ? 'it is not in the folder any more: try again, and if that fails, remove the file'
        : (codeOf(error) ?? 'unknown fault');
    throw new Error(`${what}: ${why}.`, { cause: error });
  });
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of content) {
    rest = Buffer.concat([rest, chunk]);
    for (; rest.length >= pieceBytes; rest = rest.subarray(pieceBytes)) {
      yield toPieceLine(rest.subarray(0, pieceBytes));
    }
  }
  if (rest.length > 0) yield toPieceLine(rest);
}
