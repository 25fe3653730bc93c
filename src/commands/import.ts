/**
 * `import`: adds what `export` wrote, or posts of other systems, from standard input to the store:
 * all or nothing. What is there as it is in the input is skipped, and what differs is refused. Some
 * hundred records are in memory.
 */

import { createHash, randomUUID } from 'node:crypto';
import { loadAccounts } from '../auth/accounts.ts';
import { type Config, readConfig } from '../config.ts';
import { createLocalClock } from '../domain/local-date-time.ts';
import { AppError } from '../errors.ts';
import { isObject, jsonDepthMax, jsonValuesMax, parseJson } from '../http/json.ts';
import type { ListedFile, StoredFile } from '../store/file-index.ts';
import { type Folder, openFolder } from '../store/files/open.ts';
import type { JsonObject } from '../store/model.ts';
import { fillStore, startSeconds } from '../store/open.ts';
import type { FillableStore } from '../store/whole-store.ts';
import { type CommandContext, toLog, UsageError } from './command.ts';
import { decodeForeignPost, type Entry, findUnknown, foreignMembers } from './foreign-posts.ts';
import { atLine, inLine, type Line, readLines } from './lines.ts';
import {
  decodeFile,
  decodePiece,
  fault,
  fileMembers,
  type FileLine,
  header,
  type KindName,
  kindOfLine,
  kinds,
  toLine,
} from './transfer.ts';

/** The memory of one line with its values, and of the lines that are stored by one statement. */
const lineBytesMin = 16 * 1024 * 1024;
const batchRecordsMax = 500;
const batchBytesMax = 1024 * 1024;
/** A text of this many bytes may take six times as many in JSON. */
const escapeBytesMax = 6;
/** What is on the disk for a day, and in no index, is garbage. */
const millisecondsMax = 43_200_000;

export async function runImport(args: readonly string[], context: CommandContext): Promise<string> {
  if (args.length > 0) throw new UsageError('usage: node dist/server.js import <store.jsonl');
  const config = readConfig(context.environment);
  const { storeUrl, storeTimeoutSeconds: timeoutSeconds, uploadDir } = config;
  const configured = new Map(
    (await loadAccounts(config)).map(({ username, id }) => [username, id]),
  );
  let folder: Folder | undefined;
  const options = {
    log: toLog(context),
    startSeconds,
    timeoutSeconds,
    prepare: async (files: FillableStore['files']) => {
      if (uploadDir !== '') folder = await openFolder(uploadDir, files, randomUUID);
    },
  };
  const { stored, skipped } = await fillStore(storeUrl, options, async (store) => {
    try {
      const now = createLocalClock(context.now)();
      const idOf = (username: string) => configured.get(username);
      return await new Import({ config, store, folder, now, idOf }).run(context.input);
    } catch (error) {
      await folder?.discard();
      throw error;
    }
  });
  return `Stored ${stored} records; ${skipped} were there already.`;
}

interface Deps {
  readonly config: Config;
  readonly store: FillableStore;
  readonly folder: Folder | undefined;
  readonly now: string;
  readonly idOf: (username: string) => string | undefined;
}

type Lines = AsyncGenerator<Line, void, undefined>;
type Placed = Entry & { readonly line: number };
type NewFile = Omit<ListedFile, 'place'> & { readonly line: number };

class Import {
  readonly #deps: Deps;
  /** What waits to be stored together. */
  #batch: Placed[] = [];
  #batchBytes = 0;
  /** By name. Their contents are on the disk. */
  readonly #files = new Map<string, NewFile>();
  readonly #counts = { stored: 0, skipped: 0 };
  /** With a header, the input is an export. */
  #isExport = false;
  #isEnded = false;
  #articleCounter = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async run(input: CommandContext['input']) {
    const { config, store, folder, now } = this.#deps;
    const { storedFilesMax: filesMax, storedBytesMax: bytesMax } = config;
    const beganAt = performance.now();
    const lines = readLines(input, Math.max(lineBytesMin, escapeBytesMax * config.bodyBytesMax));
    let isFirst = true;
    for await (const line of lines) {
      await inLine(line.number, () => this.#take(line, lines, isFirst));
      isFirst = false;
    }
    if (isFirst) throw new Error('The input is empty: what should have written it has failed.');
    if (this.#isExport && !this.#isEnded) throw new Error('The input ends before its last line.');
    await this.#flush();
    await folder?.flush();
    if (performance.now() - beganAt > millisecondsMax) {
      throw new Error('The import took more than 12 hours.');
    }
    const files = [...this.#files.values()];
    const limits = { filesMax, bytesMax };
    const [there] = await store.end({ articleCounter: this.#articleCounter, now, files, limits });
    const line = there && this.#files.get(there.storedName)?.line;
    if (line !== undefined) throw atLine(line, 'a file with this name was stored meanwhile');
    this.#counts.stored += files.length;
    return this.#counts;
  }

  async #take(line: Line, lines: Lines, isFirst: boolean): Promise<void> {
    const value = this.#parse(line);
    if (this.#isEnded) throw fault('', 'follows the end');
    if (isFirst && 'format' in value) return this.#takeHeader(value);
    const { kind = 'post', ...members } = value;
    if (kind === 'end') this.#isEnded = true;
    else if (kind === 'file') await this.#takeFile(line.number, members, lines);
    else {
      for (const entry of this.#decode(kind, members)) {
        this.#checkLength(entry, line);
        this.#batch.push({ ...entry, line: line.number });
      }
      this.#batchBytes += line.bytes.length;
      const isFull = this.#batch.length >= batchRecordsMax || this.#batchBytes >= batchBytesMax;
      if (isFull) await this.#flush();
    }
  }

  #parse({ bytes }: Line): JsonObject {
    const value = parseJson(bytes, {
      // A document is a member of its line.
      depthMax: jsonDepthMax + 1,
      valuesMax: jsonValuesMax + kinds.account.members.length,
      ...(this.#isExport && { hasAnyText: true }),
    });
    if (!isObject(value)) throw fault('', 'must be an object');
    return value as JsonObject; // JSON has no other values
  }

  #takeHeader({ format, version, articleCounter = 0 }: JsonObject): void {
    if (format !== header.format || version !== header.version) {
      throw fault('', 'is the header of another format, or of a newer version');
    }
    if (!Number.isSafeInteger(articleCounter) || Number(articleCounter) < 0) {
      throw fault('/articleCounter', 'must be a whole number');
    }
    this.#articleCounter = Number(articleCounter);
    this.#isExport = true;
  }

  #decode(name: JsonObject[string], given: JsonObject): readonly Entry[] {
    const [kind, line] = kindOfLine(name, given);
    const isForeign = kind === 'post' && line['id'] === undefined;
    const known = isForeign ? foreignMembers : kinds[kind].members;
    const unknown = findUnknown(line, known);
    if (unknown !== undefined) throw fault(`/${unknown}`, `is no member of a ${kind}`);
    if (isForeign) return decodeForeignPost(line, this.#deps);
    const record = kinds[kind].decode(line, this.#deps.config.bodyBytesMax);
    return [{ kind, record, free: [] }];
  }

  /** A body could not have longer texts. */
  #checkLength({ record }: Entry, line: Line): void {
    const { bodyBytesMax } = this.#deps.config;
    if (line.bytes.length <= bodyBytesMax) return;
    const texts = Object.values(record).filter((value) => typeof value === 'string');
    if (texts.reduce((sum, each) => sum + Buffer.byteLength(each), 0) <= bodyBytesMax) return;
    throw new AppError('content_too_large', 'the texts are longer than BODY_BYTES_MAX');
  }

  async #flush(): Promise<void> {
    const batch = this.#batch;
    [this.#batch, this.#batchBytes] = [[], 0];
    for (const name of Object.keys(kinds) as KindName[]) {
      const entries = batch.filter(({ kind }) => kind === name);
      if (entries.length === 0) continue;
      const records = entries.map(({ record }) => record);
      const results = await this.#deps.store.add(kinds[name].table, records);
      for (const [at, entry] of entries.entries()) this.#check(entry, results[at]);
    }
  }

  /** Throws if another record is there. */
  #check({ kind, record, free, line }: Placed, found: true | Entry['record'] | undefined): void {
    const isImplied = free === kinds.author.members;
    if (found === true) this.#counts.stored += isImplied ? 0 : 1;
    else if (found === undefined) {
      const isComment = kind === 'comment' || kind === 'pending';
      const reason = 'its post is not there, or the store has it with another status';
      throw atLine(line, isComment ? reason : 'another one has its name');
    } else if (toLine(kind, found, free) === toLine(kind, record, free)) {
      this.#counts.skipped += isImplied ? 0 : 1;
    } else throw atLine(line, `the store has this ${kind} with other values`);
  }

  async #takeFile(line: number, members: JsonObject, lines: Lines): Promise<void> {
    const { store, folder, config } = this.#deps;
    const unknown = findUnknown(members, fileMembers);
    if (unknown !== undefined) throw fault(`/${unknown}`, 'is no member of a file');
    const file = decodeFile(members);
    if (file.size > config.uploadBytesMax) throw fault('/size', 'is more than UPLOAD_BYTES_MAX');
    if (folder === undefined) throw fault('', 'UPLOAD_DIR is not set, so that no file is kept');
    const { name: storedName, owner = null } = file;
    const found = this.#files.get(storedName) ?? (await store.files.list(storedName))[0];
    const content = this.#readPieces(file, lines);
    if (found === undefined) {
      const written = await folder.write(content);
      this.#files.set(storedName, { storedName, owner, line, ...written });
      return;
    }
    const isSame = (await digestOf(content)) === (await digestOf(readFile(folder, found)));
    if (!isSame || found.owner !== owner)
      throw fault('', 'the store has this file with other values');
    this.#counts.skipped += 1;
  }

  async *#readPieces({ name, size }: FileLine, lines: Lines): AsyncGenerator<Buffer[]> {
    for (let left = size; left > 0;) {
      const next = await lines.next();
      const missing = `the content of ${JSON.stringify(name)} is not whole`;
      if (next.done === true) throw fault('', missing);
      const piece = await inLine(next.value.number, () => {
        const { kind, base64 } = this.#parse(next.value);
        if (kind !== 'content') throw fault('', missing);
        const bytes = decodePiece(base64);
        if (bytes.length > left) throw fault('/base64', 'has more bytes than the file');
        return bytes;
      });
      left -= piece.length;
      yield [piece];
    }
  }
}

async function* readFile(folder: Folder, file: StoredFile): AsyncGenerator<Buffer[]> {
  for await (const chunk of await folder.read(file)) yield [chunk];
}

async function digestOf(content: AsyncIterable<readonly Buffer[]>): Promise<string> {
  const digest = createHash('sha256');
  for await (const chunks of content) for (const chunk of chunks) digest.update(chunk);
  return digest.digest('hex');
}
