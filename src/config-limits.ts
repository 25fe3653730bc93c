/**
 * The settings that are limits: of HTTP, documents, uploads, GraphQL and sockets. Each has a safe
 * default, and a test that crosses it (test/limits.test.ts holds that).
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
 * What a connection can hold that is counted nowhere else: its objects, a head of 16 KiB, and small
 * bodies and answers of 16 KiB each.
 */
export const connectionBytes = 65_536;

/** In the order in which docs/settings.md lists them. */
export const limitSettings = {
  // HTTP limits
  connectionsMax: shareOfMemory('CONNECTIONS_MAX', {
    share: 8,
    bytesEach: connectionBytes,
    min: 1,
    fallbackMax: 10_000,
    unit: '',
    meaning: 'Open connections. Empty: an eighth of the heap at 64 KiB each, 10,000 at most.',
  }),
  headerBytesMax: bytes('HEADER_BYTES_MAX', {
    fallback: 16_384,
    min: 1024,
    max: MiB,
    meaning: 'Request line and headers together.',
  }),
  targetBytesMax: bytes('TARGET_BYTES_MAX', {
    fallback: 8_000,
    min: 64,
    meaning: 'Request target.',
  }),
  bodyBytesMax: bytes('BODY_BYTES_MAX', {
    fallback: MiB,
    min: 1024,
    meaning: 'A body that is read into memory (JSON).',
  }),
  headersTimeoutSeconds: seconds('HEADERS_TIMEOUT_SECONDS', {
    fallback: 10,
    meaning: 'Until the headers of a request are complete.',
  }),
  requestTimeoutSeconds: seconds('REQUEST_TIMEOUT_SECONDS', {
    fallback: 300,
    meaning: 'Until a request has arrived whole.',
  }),
  idleTimeoutSeconds: seconds('IDLE_TIMEOUT_SECONDS', {
    fallback: 30,
    meaning: 'Idle time allowed during a request or response.',
  }),
  keepAliveSeconds: seconds('KEEP_ALIVE_SECONDS', {
    fallback: 5,
    meaning: 'An idle connection between two requests.',
  }),
  drainSeconds: seconds('DRAIN_SECONDS', {
    fallback: 8,
    max: 9,
    meaning: 'What requests in flight get to finish after SIGTERM.',
  }),
  logLinesPerSecondMax: integer('LOG_LINES_PER_SECOND_MAX', {
    fallback: 200,
    min: 1,
    unit: 'lines per second',
    meaning: 'Log lines; those beyond are counted and reported in one line.',
  }),
  answerCacheBytesMax: bytes('ANSWER_CACHE_BYTES_MAX', {
    fallback: 16 * MiB,
    meaning: 'Answers kept until the next write; 0: none.',
  }),
  waitingBytesMax: shareOfMemory('WAITING_BYTES_MAX', {
    share: 8,
    min: MiB,
    fallbackMax: 128 * MiB,
    meaning:
      'Bodies, operations, answers, events in hand. Empty: 128 MiB, an eighth of the heap at most.',
  }),
  // Documents
  patchOperationsMax: integer('PATCH_OPERATIONS_MAX', {
    fallback: 1_000,
    min: 1,
    meaning: 'Operations of one JSON Patch.',
  }),
  articleBytesMax: bytes('ARTICLE_BYTES_MAX', {
    fallback: MiB,
    min: 1024,
    meaning: 'An article as JSON text; also what the copies of one patch may hold.',
  }),
  // Uploads
  uploadBytesMax: bytes('UPLOAD_BYTES_MAX', {
    fallback: 4_096 * MiB,
    min: 1024,
    meaning: 'A multipart body.',
  }),
  fileBytesMax: bytes('FILE_BYTES_MAX', {
    fallback: 2_048 * MiB,
    min: 1,
    meaning: 'One uploaded file.',
  }),
  uploadPartsMax: integer('UPLOAD_PARTS_MAX', {
    fallback: 1_000,
    min: 1,
    meaning: 'Parts of one multipart body.',
  }),
  storedFilesMax: integer('STORED_FILES_MAX', {
    fallback: 10_000,
    min: 1,
    meaning: 'Files kept; beyond: 507.',
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
  graphqlAliasesMax: integer('GRAPHQL_ALIASES_MAX', {
    fallback: 50,
    min: 1,
    meaning: 'Aliases of a document.',
  }),
  graphqlDirectivesMax: integer('GRAPHQL_DIRECTIVES_MAX', {
    fallback: 50,
    min: 1,
    meaning: 'Directives of a document.',
  }),
  graphqlVariablesMax: integer('GRAPHQL_VARIABLES_MAX', {
    fallback: 1_000,
    min: 1,
    meaning: 'Values in the variables of an operation, those within others too.',
  }),
  graphqlBatchMax: integer('GRAPHQL_BATCH_MAX', {
    fallback: 20,
    min: 1,
    meaning: 'Operations of a batch (R26).',
  }),
  graphqlErrorsMax: integer('GRAPHQL_ERRORS_MAX', {
    fallback: 20,
    min: 1,
    meaning: 'Errors of one result.',
  }),
  graphqlObjectsMax: integer('GRAPHQL_OBJECTS_MAX', {
    fallback: 100_000,
    min: 100,
    meaning: 'Objects that one request, batch or event may produce.',
  }),
  answerBytesMax: bytes('ANSWER_BYTES_MAX', {
    fallback: 16 * MiB,
    min: 65_536,
    meaning: 'One GraphQL answer, batch or event.',
  }),
  graphqlDocumentsMax: integer('GRAPHQL_DOCUMENTS_MAX', {
    fallback: 500,
    min: 1,
    meaning: 'Parsed and validated documents that are kept.',
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
  wsSocketsMax: integer('WS_SOCKETS_MAX', {
    fallback: 5_000,
    min: 1,
    meaning: 'Open WebSockets; also open event streams.',
  }),
  wsMessageBytesMax: bytes('WS_MESSAGE_BYTES_MAX', {
    fallback: 262_144,
    min: 1024,
    meaning: 'One message from a client.',
  }),
  wsMessagesPerSecondMax: integer('WS_MESSAGES_PER_SECOND_MAX', {
    fallback: 200,
    min: 1,
    unit: 'messages per second',
    meaning: 'Messages from one socket.',
  }),
  wsOperationsMax: integer('WS_OPERATIONS_MAX', {
    fallback: 100,
    min: 1,
    meaning: 'Operations under way on one socket.',
  }),
  wsInitTimeoutSeconds: seconds('WS_INIT_TIMEOUT_SECONDS', {
    fallback: 5,
    meaning: 'Until `connection_init`.',
  }),
  wsPingSeconds: seconds('WS_PING_SECONDS', {
    fallback: 15,
    meaning: 'Between two pings or keep-alives; a peer that misses one ping is ended.',
  }),
  wsQueueBytesMax: bytes('WS_QUEUE_BYTES_MAX', {
    fallback: MiB,
    min: 65_536,
    meaning: 'Bytes that wait for one subscriber; beyond: 1013 (R30).',
  }),
  subscriptionsDistinctMax: integer('SUBSCRIPTIONS_DISTINCT_MAX', {
    fallback: 1_000,
    min: 1,
    meaning: 'Different subscriptions; each is executed once per event.',
  }),
} as const satisfies Record<string, Setting<unknown>>;
