/** The plan of the rooms of src/, which tests compare with the imports, the map and the picture. */

interface Room {
  /** Rooms, or single files of them, that it may import from. */
  readonly uses: readonly string[];
  /** Rooms of which it may know types, and nothing at run time. */
  readonly types?: readonly string[];
}

/** Rooms that know no other but each other. */
const ground =
  'maybe-promise owned-buffers queue bounded-map serial scheduler errors memory-pool'.split(' ');

/** From the bottom to the top: a room knows only rooms above it in this list. */
export const rooms: Readonly<Record<string, Room>> = {
  ...Object.fromEntries(ground.map((file) => [file, { uses: [] }])),
  scheduler: { uses: ['queue'], types: ['maybe-promise'] },
  queue: { uses: [], types: [] },
  serial: { uses: [], types: ['maybe-promise'] },
  'memory-pool': { uses: ['errors'] },
  log: { uses: [] },
  settings: { uses: [] },
  config: { uses: ['settings', 'errors'] },
  'memory-plan': { uses: ['settings', 'config', 'memory-pool'] },
  router: { uses: ground },
  http: { uses: ground, types: ['config', 'log', 'router'] },
  store: { uses: ground, types: ['config', 'log'] },
  domain: {
    uses: [...ground, 'http/json.ts', 'http/json-escaped-names.ts', 'store/once.ts'],
    types: ['store', 'config', 'log'],
  },
  records: { uses: [...ground, 'http', 'domain'], types: ['store'] },
  watch: { uses: [...ground, 'http', 'log'], types: ['config', 'store'] },
  auth: { uses: [...ground, 'config', 'http', 'domain'], types: ['store', 'log', 'watch'] },
  graphql: {
    uses: [...ground, 'config', 'http', 'records', 'domain', 'auth', 'store/once.ts'],
    types: ['store', 'log', 'watch'],
  },
  handlers: {
    uses: [...ground, 'http', 'records', 'domain', 'auth', 'graphql', 'store/once.ts'],
    types: ['store', 'config', 'log', 'router'],
  },
  app: {
    uses: [...ground, ...'http router store records domain auth graphql handlers watch'.split(' ')],
    types: ['config', 'log'],
  },
  // Beside the app: what the program does instead of serving.
  commands: {
    uses: [
      'errors',
      'config',
      'store',
      'domain',
      'auth',
      'graphql/documents/trusted-documents.ts',
      'http/json.ts',
      'records/list-query.ts',
      'handlers/decode.ts',
    ],
  },
  server: {
    uses: [...ground, 'http', 'config', 'settings', 'memory-plan', 'log', 'app', 'commands'],
  },
};

/** The rooms by their height over the ground, from the bottom to the top, each layer by name. */
export const layers: readonly (readonly string[])[] = (() => {
  const heights = new Map<string, number>();
  for (const [name, { uses, types = [] }] of Object.entries(rooms)) {
    const below = [...uses, ...types].map((place) => heights.get(place.replace(/\/.*/, '')) ?? -1);
    heights.set(name, Math.max(-1, ...below) + 1);
  }
  const found: string[][] = [];
  for (const [name, height] of heights) (found[height] ??= []).push(name);
  return found.map((names) => names.toSorted());
})();
