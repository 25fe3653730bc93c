/** The settings of a service that is measured, with one account in place of the demo data. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashPassword } from '../dist/auth/password.js';

/** What the service stores goes into `folder`. */
export async function serviceSettings(folder) {
  const user = { username: 'user', email: 'user@example.org', roles: ['USER'] };
  const passwordHash = await hashPassword('password');
  const file = join(folder, 'users.json');
  writeFileSync(file, JSON.stringify([{ ...user, passwordHash }]));
  return {
    DEMO_DATA: 'false',
    JWT_SECRET: 'a secret that only this benchmark knows',
    TOKEN_TTL_SECONDS: '86400',
    UPLOAD_DIR: folder,
    USERS_FILE: file,
  };
}
