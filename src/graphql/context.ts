/** What resolvers can use: one context for each operation. */

import type { GraphQLResolveInfo } from 'graphql';
import type { AddComment } from '../domain/comments.ts';
import type { Topic } from '../domain/topic.ts';
import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { List, Range } from '../store/list.ts';
import type { Account, Comment } from '../store/model.ts';
import type { Records, Store } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { CountFields, Selection } from './schema/fields.ts';
import { Loaders } from './schema/loaders.ts';
import { readList, type ReadTools } from './schema/read-list.ts';
import { isOnlyField, Parts } from './parts.ts';
import { sliceLength, Slices } from './slices.ts';
import type { Scheduler } from '../scheduler.ts';

/** Dependencies that all operations share. */
export interface ContextDeps {
  readonly store: Store;
  /** Stores a comment, then publishes it. */
  readonly addComment: AddComment;
  /** The published comments, for the subscription. */
  readonly commentAdded: Pick<Topic<Comment>, 'subscribe'>;
  readonly log: Log;
  /** True if every mutation needs a token (R23). */
  readonly writesNeedToken: boolean;
}

/** Values of the request; all operations of a batch share them. */
export interface RequestScope {
  readonly requestId: string;
  /** The account of the request's token; undefined without one. Throws `invalid_token`. */
  readonly viewer: () => MaybePromise<Account | undefined>;
  /** Where the records of a cacheable response are read; default: the store. */
  readonly records?: Records;
  /** The caller of `engine.createBudget()` releases it. */
  readonly budget: Budget;
}

/** Tools that all operations share. */
export interface ContextTools {
  readonly scheduler: Scheduler;
  readonly countFields: CountFields;
}

/** Approximate memory of a field in a result, without a long text, in bytes. */
const fieldBytes = 32;

/** New for each operation: in a batch, a query must read what an earlier mutation wrote. */
export class GraphqlContext {
  readonly deps: Omit<ContextDeps, 'store'>;
  readonly records: Records;
  readonly scope: RequestScope;
  readonly #tools: ContextTools;
  readonly #keepsObjects: boolean;
  /** Undefined if the operation is executed at once. */
  parts: Parts | undefined;
  #slices: Slices | undefined;
  #loaders: Loaders | undefined;

  constructor(deps: ContextDeps, scope: RequestScope, tools: ContextTools) {
    this.deps = deps;
    this.records = scope.records ?? deps.store;
    this.#keepsObjects = deps.store.keepsObjects;
    this.scope = scope;
    this.#tools = tools;
  }

  get loaders(): Loaders {
    return (this.#loaders ??= new Loaders(this.records, this.#readTools));
  }

  /** Reads a range of a list. Throws, or rejects with, a BudgetError if it is too long. */
  readList<T>(list: List<T>, range: Range): MaybePromise<readonly T[]> {
    return readList(list, this.#readTools, range);
  }

  get #readTools(): ReadTools {
    const { scheduler } = this.#tools;
    return { budget: this.scope.budget, scheduler, keepsObjects: this.#keepsObjects };
  }

  /** Charges the budget for one object and its selected fields. Throws a BudgetError. */
  chargeObject(selection: Selection): void {
    this.scope.budget.charge(1, this.#tools.countFields(selection) * fieldBytes);
  }

  /**
   * The same for the objects of a list. Returns the list that the resolver must return.
   * `areLeaves`: their type has no fields of other records.
   */
  chargeList<T>(
    list: readonly T[] = [],
    selection: Selection,
    areLeaves = false,
  ): MaybePromise<readonly MaybePromise<T>[]> {
    const fields = this.#charge(list, selection);
    return (this.#slices ??= new Slices(this.#tools.scheduler)).of(list, { fields, areLeaves });
  }

  /** The same for a root field. Returns the first part if the operation is executed in parts. */
  chargeRootList(
    list: readonly unknown[],
    info: Selection & Pick<GraphQLResolveInfo, 'operation'>,
  ): MaybePromise<readonly unknown[]> {
    if (list.length <= sliceLength || !isOnlyField(info)) return this.chargeList(list, info);
    this.#charge(list, info);
    this.parts = new Parts(list);
    return this.parts.next();
  }

  /** Returns the next part of the list; undefined if none has been charged. */
  nextPart(): readonly unknown[] | undefined {
    // Each part has a limit of its own.
    this.#slices = undefined;
    return this.parts?.next();
  }

  /** Returns the number of fields of all objects together. */
  #charge(list: readonly unknown[], selection: Selection): number {
    const fields = list.length * this.#tools.countFields(selection);
    this.scope.budget.charge(list.length, fields * fieldBytes);
    return fields;
  }

  /** Charges the budget for a text, and returns it. Throws a BudgetError. */
  chargeText(text: string): string {
    // A short text is included in `fieldBytes`.
    if (text.length > fieldBytes) this.scope.budget.charge(0, text.length);
    return text;
  }
}
