/** Batches of operations over HTTP (R26), and what may run by which method. */

import { AppError, type GraphqlCode } from '../../errors.ts';
import type { RequestContext } from '../context.ts';
import type { GraphqlRequest } from '../documents/documents.ts';
import type { Engine, Executed, Operation } from '../engine.ts';
import { refuseKey } from '../once.ts';
import { invalidRequest } from './messages.ts';

/** Throws an AppError for an operation that must not run over this method. */
export function checkOperation({ type }: Operation, method = 'POST'): void {
  if (type === 'subscription') {
    throw invalidRequest(
      'A subscription needs a WebSocket at /graphql, or a request for text/event-stream.',
    );
  }
  if (type === 'mutation' && method !== 'POST') {
    const allow = { headers: ['Allow', 'POST'] };
    throw new AppError('method_not_allowed', 'A mutation is sent with POST.', allow);
  }
}

/** R40: throws if several mutations of a batch have the key of its header. */
export async function checkBatchKey(
  engine: Engine,
  requests: readonly (GraphqlRequest | AppError)[],
  { key, requestId }: { readonly key: string; readonly requestId: string },
): Promise<void> {
  const isKeyedWrite = (request: GraphqlRequest): boolean => {
    try {
      return engine.prepare(request, requestId).once?.key === key;
    } catch (error) {
      if (error instanceof AppError && request.once?.key === key) throw error;
      return false; // told in its place
    }
  };
  let writes = 0;
  for (const request of requests) {
    if (request instanceof AppError) continue;
    if (await engine.scheduler.run(() => isKeyedWrite(request))) writes += 1;
  }
  if (writes > 1) {
    throw refuseKey('operations of a batch have their own in `extensions.idempotencyKey`');
  }
}

/** Runs operations in sequence (R26). An error of one of them is part of its result. */
export async function runBatch(
  engine: Engine,
  requests: readonly (GraphqlRequest | AppError)[],
  context: RequestContext,
): Promise<Executed> {
  const { requestId } = context.facts;
  const texts: string[] = [];
  const codes: GraphqlCode[] = [];
  let isRepeatable = true;
  for (const request of requests) {
    try {
      if (request instanceof AppError) throw request;
      const executed = await engine.scheduler.run(() => {
        const operation = engine.prepare(request, requestId);
        checkOperation(operation);
        return engine.execute(operation, context);
      });
      texts.push(executed.json);
      codes.push(...executed.codes);
      isRepeatable &&= executed.isRepeatable;
    } catch (error) {
      const errors = engine.refuse(error, requestId);
      codes.push(...errors.map(({ extensions }) => extensions.code));
      texts.push(JSON.stringify({ errors }));
      isRepeatable = false;
    }
  }
  return { json: `[${texts.join(',')}]`, codes, isRepeatable };
}
