/** Is the service still quick for others? Calls `/hello` all the while and keeps the worst gap. */

import { Agent, get } from 'node:http';

export interface Prober {
  /** Ends the calls; the longest time in milliseconds from a call to its answer. */
  stop(): Promise<number>;
}

const everyMilliseconds = 50;

/** The first call is made at once; one that fails counts as endless. */
export function startProber(url: string): Prober {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const calls = new Set<Promise<void>>();
  let longest = 0;
  const measure = async (): Promise<void> => {
    const started = performance.now();
    const status = await ask(`${url}/hello`, agent);
    longest = Math.max(longest, status === 200 ? performance.now() - started : Infinity);
  };
  const call = (): void => {
    const answered = measure().finally(() => calls.delete(answered));
    calls.add(answered);
  };
  call();
  const timer = setInterval(call, everyMilliseconds);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(calls);
      agent.destroy();
      return longest;
    },
  };
}

/** The status; 0 where no answer came. */
function ask(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const request = get(url, { agent }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('close', () => resolve(0));
    });
    request.once('error', () => resolve(0));
  });
}
