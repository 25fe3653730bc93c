/** What the examples of the documents need beside Node. */

import { spawnSync } from 'node:child_process';

const missing = ['bash', 'curl'].find((program) => {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status !== 0;
});

/** For `skip` of a test: false, or why the test cannot run. */
export const noShell = missing !== undefined && `there is no ${missing} on this machine`;
