/** A reporter of `node --test` for scripts/faults.mjs: one line of JSON for each test that ended. */
export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.skip !== undefined || data.details.type === 'suite') continue;
    const { error } = data.details;
    const kind = error === undefined ? 'passed' : kindOf(error);
    if (kind !== undefined) yield `${toLine({ name: data.name, kind, reason: reasonOf(error) })}\n`;
  }
}

/** Undefined for a test whose subtests tell more. */
function kindOf({ failureType, cause, exitCode }) {
  if (failureType === 'subtestsFailed') return undefined;
  if (failureType === 'testTimeoutFailure' || failureType === 'cancelledByParent')
    return 'time limit';
  // `until` of test/support fails with what it has waited for; a property with its last case.
  for (let why = cause; why !== undefined && why !== null; why = why.cause) {
    const isAssertion = why.code === 'ERR_ASSERTION' || why.name === 'AssertionError';
    if (isAssertion || String(why.message).startsWith('Not within ')) return 'assertion';
  }
  return exitCode === undefined ? 'error' : 'end of the process';
}

function reasonOf(error) {
  return String(error?.cause?.message ?? error?.message ?? '')
    .split('\n')
    .slice(0, 3)
    .join(' ')
    .slice(0, 200);
}

/** Without characters that some readers take for the end of a line. */
function toLine(value) {
  return JSON.stringify(value).replaceAll(/[^ -~]/g, '?');
}
