/** What operators see: the log of requests, security events and, if enabled, metrics. */

import type { Config } from '../config.ts';
import type { Observer } from '../http/server/observe.ts';
import { createCountedLog, type Log } from '../log.ts';
import type { Uploads } from '../store/files/uploads.ts';
import { createRequestLog } from './request-log.ts';
import {
  createServiceMetrics,
  type LogSecurity,
  type Readings,
  type ServiceMetrics,
  type StoredFiles,
} from './service-metrics.ts';

export interface Monitor {
  readonly observer: Observer;
  readonly security: LogSecurity;
  /** Undefined if nobody can ask for them. */
  readonly metrics: ServiceMetrics | undefined;
}

export interface MonitorDeps extends Omit<Readings, 'stored'> {
  readonly log: Log;
  /** Log of requests when LOG_REQUESTS is `all`: it has no limit on lines per second. */
  readonly requestLog?: Log | undefined;
  readonly monotonicNow: () => number;
  readonly uploads: () => Uploads;
}

export function createMonitor(config: Config, deps: MonitorDeps): Monitor {
  const { log, requestLog = log, monotonicNow, uploads } = deps;
  const metrics =
    config.adminPort === undefined
      ? undefined
      : createServiceMetrics(config, { ...deps, stored: () => countStored(uploads()) });
  const report = createCountedLog(log, monotonicNow);
  const security: LogSecurity = (event, facts) => {
    metrics?.securityEvent(event);
    report(event, facts);
  };
  const observer = createRequestLog({ config, log: requestLog, security, metrics });
  return { observer, security, metrics };
}

async function countStored(uploads: Pick<Uploads, 'open'>): Promise<StoredFiles> {
  const snapshot = await uploads.open();
  await snapshot.release();
  const { files } = snapshot;
  return { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}
