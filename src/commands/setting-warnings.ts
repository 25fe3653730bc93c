/** Warnings about settings that are valid but probably not intended. */

import { type Config, settings } from '../config.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of older versions, with what holds instead. */
const removed: Readonly<Record<string, string>> = {
  GRAPHQL_DEPTH_MAX: 'the limit is 20',
  GRAPHQL_HTTP_DRAFT: 'statuses are those of the public audits',
  GRAPHQL_TOKENS_MAX: 'the limit is 2,000',
  LOG_LEVEL: 'use LOG_REQUESTS, or filter the lines by their level',
  REQUEST_TIMEOUT_SECONDS: 'a request may take as long as it moves',
  STORED_FILES_MAX: 'the limit is 10,000; STORED_BYTES_MAX limits their size',
  WS_PING_SECONDS: 'the interval is 15 seconds',
};

/** Returns one sentence for each warning. */
export function findSettingWarnings(config: Config, environment: Environment): readonly string[] {
  const names = Object.values(settings).map(({ name }) => name);
  const unknown = Object.keys(environment).flatMap((given) => {
    if (names.includes(given)) return [];
    if (Object.hasOwn(removed, given)) return [`${given} no longer exists: ${removed[given]}.`];
    const meant = names.find((name) => isNear(given, name));
    return meant === undefined ? [] : [`${given} is not a setting. Did you mean ${meant}?`];
  });
  const { environment: nodeEnv } = config;
  if (nodeEnv === 'production') return [...unknown, ...findOpenSettings(config)];
  return /^prod/i.test(nodeEnv) || isNear(nodeEnv, 'production')
    ? [...unknown, 'NODE_ENV is not "production", and counts as any other value.']
    : unknown;
}

/** Settings whose defaults suit development only. */
function findOpenSettings({ jwtSecret, requireAuth, demoData }: Config): readonly string[] {
  return [
    ...(jwtSecret === ''
      ? ['JWT_SECRET is not set: tokens become invalid when this process ends.']
      : []),
    ...(requireAuth === 'none' ? ['REQUIRE_AUTH is none: everybody may change data.'] : []),
    ...(demoData ? ['DEMO_DATA is true: a new store is filled with demo posts.'] : []),
  ];
}

/** Shorter names resemble too many unrelated variables. */
const lengthMin = 6;

/** True for one letter added, missing or changed, or two exchanged. Letter case does not count. */
function isNear(given: string, name: string): boolean {
  if (name.length < lengthMin || Math.abs(given.length - name.length) > 1) return false;
  const [a, b] = [given.toUpperCase(), name.toUpperCase()];
  let front = 0;
  while (front < a.length && a[front] === b[front]) front += 1;
  let back = 0;
  while (back < Math.min(a.length, b.length) - front && a.at(-1 - back) === b.at(-1 - back)) {
    back += 1;
  }
  const [restA, restB] = [a.slice(front, a.length - back), b.slice(front, b.length - back)];
  const isExchanged = restA.length === 2 && restA[0] === restB[1] && restA[1] === restB[0];
  return isExchanged || (restA.length <= 1 && restB.length <= 1);
}
