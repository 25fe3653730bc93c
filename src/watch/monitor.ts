/** What operators see: the log of requests, security events and, if enabled, metrics. */

import type { Config } from '../config.ts';
import { createCountedLog, type Log } from '../log.ts';
import { createRequestLog } from './request-log.ts';
import { createServiceMetrics, type LogSecurity, type Readings } from './service-metrics.ts';

export interface MonitorDeps extends Readings {
  readonly log: Log;
  /** Log of requests when LOG_REQUESTS is `all`: it has no limit on lines per second. */
  readonly requestLog?: Log | undefined;
  readonly monotonicNow: () => number;
}

export function createMonitor(config: Config, deps: MonitorDeps) {
  const { log, requestLog = log, monotonicNow } = deps;
  // Without ADMIN_PORT nobody can ask for them.
  const metrics = config.adminPort === undefined ? undefined : createServiceMetrics(config, deps);
  const report = createCountedLog(log, monotonicNow);
  const security: LogSecurity = (event, facts) => {
    metrics?.securityEvent(event);
    report(event, facts);
  };
  const observer = createRequestLog({ config, log: requestLog, security, metrics });
  return { observer, security, metrics };
}
