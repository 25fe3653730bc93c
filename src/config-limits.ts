/**
 * The settings that are limits: of HTTP, documents, uploads, GraphQL and sockets. Each has a safe
 * default. test/limits.test.ts checks that a test sets each of them.
 */

import {
  bytes,
  choice,
  integer,
  MiB,
  seconds,
  type Setting,
  shareOfMemory,
  text,
} from './settings.ts';

/**
 * Memory of a connection that is not counted elsewhere, in bytes: its objects, a head of 16 KiB,
 * and a body and a response of up to 16 KiB each.
 */
export const connectionBytes = 65_536;

/** Memory of the parsed GraphQL documents that are cached: hundreds of usual ones. */
export const documentsBytesMax = 24 * MiB;
/** Memory of the texts of persisted queries. */
export const persistedTextsBytesMax = 2 * MiB;

/** In the order in which docs/settings.md lists them. */
export const limitSettings = {
  // HTTP limits
  connectionsMax: shareOfMemory('CONNECTIONS_MAX', {
    share: 8,
    bytesEach: connectionBytes,
    min: 1,
    fallbackMax: 10_000,
    unit: '',
    meaning:
      'Connections; WebSockets: half. Empty: an eighth of the heap at 64 KiB each, 10,000 at most.',
  }),
  bodyBytesMax: bytes('BODY_BYTES_MAX', {
    fallback: MiB,
    min: 1024,
    meaning: 'A body that is read into memory (JSON); an article, also after a patch.',
  }),
  idleTimeoutSeconds: seconds('IDLE_TIMEOUT_SECONDS', {
    fallback: 30,
    meaning: 'A request or response may stand still for so long; less while memory is short.',
  }),
  keepAliveSeconds: seconds('KEEP_ALIVE_SECONDS', {
    fallback: 5,
    meaning: 'An idle connection between two requests.',
  }),
  drainDelaySeconds: integer('DRAIN_DELAY_SECONDS', {
    fallback: 0,
    max: 3_600,
    unit: 'seconds',
    meaning: 'After SIGTERM: not ready, but serving, for so long; then the drain. 0: none.',
  }),
  answerCacheBytesMax: bytes('ANSWER_CACHE_BYTES_MAX', {
    fallback: 16 * MiB,
    meaning: 'Responses cached until what they read is changed; 0: none.',
  }),
  waitingBytesMax: shareOfMemory('WAITING_BYTES_MAX', {
    share: 8,
    min: MiB,
    fallbackMax: 128 * MiB,
    meaning:
      'What is in hand; for one subscriber a 128th. Empty: 128 MiB, an eighth of the heap at most.',
  }),
  // Uploads
  uploadBytesMax: bytes('UPLOAD_BYTES_MAX', {
    fallback: 4_096 * MiB,
    min: 1024,
    meaning: 'A multipart body, and so a file.',
  }),
  storedFilesMax: integer('STORED_FILES_MAX', {
    fallback: 10_000,
    min: 1,
    meaning: 'Files kept; beyond: 507.',
  }),
  storedBytesMax: bytes('STORED_BYTES_MAX', {
    fallback: 65_536 * MiB,
    min: 1024,
    meaning: 'The sum of their sizes; beyond: 507.',
  }),
  // GraphQL
  graphqlTokensMax: integer('GRAPHQL_TOKENS_MAX', {
    fallback: 2_000,
    min: 10,
    meaning: 'Tokens of a document; twice as many pairs of fields to merge.',
  }),
  graphqlDepthMax: integer('GRAPHQL_DEPTH_MAX', {
    fallback: 20,
    min: 2,
    meaning: 'Levels of fields in an operation, fragments spread.',
  }),
  graphqlObjectsMax: integer('GRAPHQL_OBJECTS_MAX', {
    fallback: 25_000,
    min: 100,
    meaning: 'Objects that one request, batch or event may produce.',
  }),
  graphqlHttpDraft: choice('GRAPHQL_HTTP_DRAFT', {
    words: ['audited', '2026-08'],
    fallback: 'audited',
    meaning: 'Statuses: as the public audits ask, or those of the newer draft (422, 294).',
  }),
  trustedDocuments: text('TRUSTED_DOCUMENTS', {
    unit: 'file',
    meaning: 'JSON object of hash → document: with it, no other document runs.',
  }),
  // WebSocket
  wsPingSeconds: seconds('WS_PING_SECONDS', {
    fallback: 15,
    meaning: 'Between two pings or keep-alives; a peer that misses one ping is ended.',
  }),
} as const satisfies Record<string, Setting<unknown>>;
