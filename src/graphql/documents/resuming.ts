/**
 * Subscriptions that resume (R41). Equal ones that differ in `after` share a group, so that `after`
 * is read from the operation, and taken out of the document that the group executes.
 */

import {
  type DocumentNode,
  type FieldNode,
  getArgumentValues,
  getVariableValues,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { toId } from '../../domain/ids.ts';

/** What a subscription asks for. */
export interface Resume {
  /** The id of a comment; undefined if what was sent is not an id. */
  readonly after: string | undefined;
  readonly postId: string | undefined;
}

interface Asked {
  readonly operation: OperationDefinitionNode;
  readonly variables: object | undefined;
  readonly lastEventId: string | undefined;
}

/** An id that no post has: instead of one that is malformed (R38). */
const noPost = '00000000-0000-0000-0000-000000000000';

/**
 * Returns where a subscription resumes, if it does. `lastEventId` is newer than an argument: a
 * browser that connects again repeats the URL. Returns undefined for variables that do not fit,
 * which the group refuses.
 */
export function readResume(
  schema: GraphQLSchema,
  document: DocumentNode,
  asked: Asked,
): { readonly resume?: Resume } | undefined {
  const { variableDefinitions = [], selectionSet } = asked.operation;
  const { coerced } = getVariableValues(schema, variableDefinitions, { ...asked.variables });
  const node = findField(document, selectionSet);
  const field = node && schema.getSubscriptionType()?.getFields()[node.name.value];
  if (coerced === undefined || node === undefined || field === undefined) return undefined;
  const args = getArgumentValues(field, node, coerced) as Readonly<Record<string, string | null>>;
  const after = asked.lastEventId ?? args['after'];
  const postId = args['postId'] ?? undefined;
  if (after == null) return {};
  const post = postId === undefined ? undefined : (toId(postId) ?? noPost);
  return { resume: { after: toId(after), postId: post } };
}

/** The one field of a valid subscription, which may be inside fragments. */
function findField(
  document: DocumentNode,
  { selections }: SelectionSetNode,
): FieldNode | undefined {
  const [first] = selections;
  if (first === undefined || first.kind === Kind.FIELD) return first;
  if (first.kind === Kind.INLINE_FRAGMENT) return findField(document, first.selectionSet);
  const { definitions } = document;
  const isNamed = (name: string): boolean => name === first.name.value;
  const fragment = definitions.find((definition) => {
    return definition.kind === Kind.FRAGMENT_DEFINITION && isNamed(definition.name.value);
  });
  return fragment && 'selectionSet' in fragment
    ? findField(document, fragment.selectionSet)
    : undefined;
}

/** The document without every `after`, and the variables that nothing else uses. */
export function withoutAfter(document: DocumentNode): DocumentNode {
  const isSubscription = document.definitions.some((definition) => {
    return 'operation' in definition && definition.operation === OperationTypeNode.SUBSCRIPTION;
  });
  if (!isSubscription) return document;
  // A comment has no lists: in a subscription, no other field has this argument.
  const plain = visit(document, {
    Argument: ({ name }) => (name.value === 'after' ? null : undefined),
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
