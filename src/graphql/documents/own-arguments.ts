/**
 * The arguments of a subscription are its subscriber's own: `postId` (R38) selects what it gets,
 * `after` (R41) where it begins. They are read from the operation, and taken out of the document
 * that its group executes. So the readers of a thousand posts are one group.
 *
 *     asked        subscription ($p: String, $x: Boolean!) {
 *                    commentAdded(postId: $p) { id content @skip(if: $x) } }
 *     the group's  subscription ($x: Boolean!) { commentAdded { id content @skip(if: $x) } }
 */

import {
  type DocumentNode,
  type FieldNode,
  getArgumentValues,
  getVariableValues,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  visit,
} from 'graphql';
import { toId } from '../../domain/ids.ts';
import { refuseRequest } from '../errors.ts';
import { collectFields, findFragments } from './limits.ts';

export interface OwnArguments {
  /** Only comments of this post; undefined for all. */
  readonly postId: string | undefined;
  /** The id of a comment, or `noId`; undefined if the subscription does not resume. */
  readonly after: string | undefined;
}

interface Asked {
  readonly operation: OperationDefinitionNode;
  readonly variables: object | undefined;
  readonly lastEventId: string | undefined;
}

/** An id that nothing has: instead of one that is malformed (R38). */
export const noId = '00000000-0000-0000-0000-000000000000';

/**
 * `lastEventId` is newer than `after`: a browser that connects again repeats the URL. Returns
 * undefined for variables that do not fit, which the group refuses.
 */
export function readOwnArguments(
  schema: GraphQLSchema,
  document: DocumentNode,
  asked: Asked,
): OwnArguments | undefined {
  const { variableDefinitions = [], selectionSet } = asked.operation;
  const { coerced } = getVariableValues(schema, variableDefinitions, { ...asked.variables });
  // A valid subscription has one field, which may be inside fragments.
  const [[node] = []] = collectFields([selectionSet], findFragments(document)).values();
  const field = node && schema.getSubscriptionType()?.getFields()[node.name.value];
  if (coerced === undefined || node === undefined || field === undefined) return undefined;
  const args = getArgumentValues(field, node, coerced) as Readonly<Record<string, string | null>>;
  const idOf = (text: string | null | undefined): string | undefined =>
    text == null ? undefined : (toId(text) ?? noId);
  return { postId: idOf(args['postId']), after: idOf(asked.lastEventId ?? args['after']) };
}

/**
 * The document without the arguments of subscriptions, and without the variables that nothing else
 * uses. A variable that another field or operation uses stays: its values make groups of their own.
 */
export function withoutOwnArguments(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const isSubscription = document.definitions.some((definition) => {
    return 'operation' in definition && definition.operation === OperationTypeNode.SUBSCRIPTION;
  });
  if (!isSubscription) return document;
  const fields = new Set(Object.keys(schema.getSubscriptionType()?.getFields() ?? {}));
  // No other type has a field of that name.
  const plain = visit(document, {
    Field: (node) =>
      fields.has(node.name.value) && node.arguments?.length
        ? { ...node, arguments: [] }
        : undefined,
  });
  if (plain === document) return document;
  const used = new Set<string>();
  visit(plain, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void used.add(name.value),
  });
  const shared = visit(plain, {
    VariableDefinition: ({ variable }) => (used.has(variable.name.value) ? undefined : null),
  });
  return parse(print(shared));
}

/** Throws for an event with more than a comment and its author: events wait for no store. */
export function checkEvent(definition: OperationDefinitionNode, document: DocumentNode): void {
  const fragments = findFragments(document);
  const below = (nodes: readonly FieldNode[]): readonly FieldNode[] => {
    const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    return [...collectFields(sets, fragments).values()].flat();
  };
  const ofComment = below([...collectFields([definition.selectionSet], fragments).values()].flat());
  const others = ofComment.filter(({ name }) => name.value !== 'author');
  if (below(others).length === 0 && below(below(ofComment)).length === 0) return;
  const message = 'An event has a comment and its author: ask for other records by a query.';
  throw refuseRequest('BAD_USER_INPUT', message);
}
