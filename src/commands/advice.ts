/** Warnings about settings that are valid but probably not intended. */

import { type Config, settings } from '../config.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns one sentence for each warning. */
export function adviseOn(config: Config, environment: Environment): readonly string[] {
  const names = Object.values(settings).map(({ name }) => name);
  const misspelt = Object.keys(environment).flatMap((given) => {
    const meant = names.includes(given) ? undefined : names.find((name) => isNear(given, name));
    return meant === undefined ? [] : [`${given} is no setting. Is ${meant} meant?`];
  });
  const { environment: nodeEnv } = config;
  if (nodeEnv === 'production') return [...misspelt, ...adviseOnProduction(config)];
  return /^prod/i.test(nodeEnv) || isNear(nodeEnv, 'production')
    ? [...misspelt, 'NODE_ENV is not "production", and counts as any other value.']
    : misspelt;
}

function adviseOnProduction({ jwtSecret, requireAuth, demoData }: Config): readonly string[] {
  return [
    ...(jwtSecret === '' ? ['JWT_SECRET is not set: tokens end with this run.'] : []),
    ...(requireAuth === 'none' ? ['REQUIRE_AUTH is none: anybody may change data.'] : []),
    ...(demoData ? ['DEMO_DATA is true: a new store begins with demo posts.'] : []),
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
