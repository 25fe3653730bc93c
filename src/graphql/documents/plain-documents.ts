/**
 * Whether a document is valid at a glance (GraphQL §5). Most are plain: one query or mutation,
 * fields without fragments and directives, arguments that are texts, variables and objects of
 * these. That takes a fiftieth of the time of `validate` with its 27 rules. What is not plain, or
 * not right, is `validate`'s to judge: no is no verdict.
 */

import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  getNamedType,
  GraphQLID,
  type GraphQLInputType,
  type GraphQLNamedInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  GraphQLString,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type ObjectFieldNode,
  OperationTypeNode,
  type SelectionSetNode,
  type TypeNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';

/** True for a document that `validate` finds no fault with. The walk is as deep as the document. */
export function isPlainlyValid(schema: GraphQLSchema, { definitions }: DocumentNode): boolean {
  const [operation] = definitions;
  if (definitions.length !== 1 || operation?.kind !== Kind.OPERATION_DEFINITION) return false;
  const { operation: kind, directives } = operation;
  // A subscription has rules of its own.
  if (kind === OperationTypeNode.SUBSCRIPTION || hasSome(directives)) return false;
  const type = schema.getRootType(kind);
  const variables = readVariables(schema, operation.variableDefinitions ?? []);
  if (type === undefined || type === null || variables === undefined) return false;
  const check = new Check(variables);
  return check.areFields(operation.selectionSet, type) && check.used.size === variables.size;
}

/** A variable without a default; its type is no list. */
interface Variable {
  readonly type: GraphQLNamedInputType;
  readonly isNonNull: boolean;
}

type Variables = ReadonlyMap<string, Variable>;

function readVariables(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
): Variables | undefined {
  const variables = new Map<string, Variable>();
  for (const { variable, type: node, defaultValue, directives } of definitions) {
    const { value: name } = variable.name;
    if (defaultValue !== undefined || hasSome(directives) || variables.has(name)) return undefined;
    const isNonNull = node.kind === Kind.NON_NULL_TYPE;
    const type = findType(schema, isNonNull ? node.type : node);
    if (type === undefined) return undefined;
    variables.set(name, { type, isNonNull });
  }
  return variables;
}

function findType(schema: GraphQLSchema, node: TypeNode): GraphQLNamedInputType | undefined {
  if (node.kind !== Kind.NAMED_TYPE) return undefined;
  const type = schema.getType(node.name.value);
  return isInputType(type) ? type : undefined;
}

/** What takes values: the arguments of a field, the members of an input object. */
interface Place {
  readonly name: string;
  readonly type: GraphQLInputType;
  readonly defaultValue?: unknown;
}

class Check {
  /** Names of variables. */
  readonly used = new Set<string>();
  readonly #variables: Variables;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  areFields({ selections }: SelectionSetNode, type: GraphQLObjectType): boolean {
    const fields = type.getFields();
    const answers = new Set<string>();
    for (const selection of selections) {
      if (selection.kind !== Kind.FIELD || hasSome(selection.directives)) return false;
      // Two fields of one name in the answer may have to be made one.
      answers.add((selection.alias ?? selection.name).value);
      const field = fields[selection.name.value];
      if (field === undefined ? !isTypeName(selection) : !this.#isField(selection, field)) {
        return false;
      }
    }
    return answers.size === selections.length;
  }

  #isField({ arguments: given, selectionSet }: FieldNode, field: Field): boolean {
    if (!this.#areValues(given ?? [], field.args)) return false;
    const type = getNamedType(field.type);
    if (selectionSet === undefined) return isLeafType(type);
    return isObjectType(type) && this.areFields(selectionSet, type);
  }

  /** Each value has its place, and each place that needs a value has one. */
  #areValues(
    nodes: readonly (ArgumentNode | ObjectFieldNode)[],
    places: readonly Place[],
  ): boolean {
    const given = new Map(nodes.map(({ name, value }) => [name.value, value]));
    if (given.size !== nodes.length) return false;
    let found = 0;
    for (const { name, type, defaultValue } of places) {
      const value = given.get(name);
      if (value === undefined) {
        if (isNonNullType(type) && defaultValue === undefined) return false;
      } else if (this.#isValue(value, type)) found += 1;
      else return false;
    }
    return found === given.size;
  }

  #isValue(node: ValueNode, wanted: GraphQLInputType): boolean {
    const isNonNull = isNonNullType(wanted);
    const type = isNonNull ? wanted.ofType : wanted;
    if (isListType(type)) return false;
    if (node.kind === Kind.VARIABLE) return this.#isVariable(node.name.value, type, isNonNull);
    if (node.kind === Kind.STRING) return type === GraphQLString || type === GraphQLID;
    if (node.kind !== Kind.OBJECT || !isInputObjectType(type) || type.isOneOf) return false;
    return this.#areValues(node.fields, Object.values(type.getFields()));
  }

  #isVariable(name: string, type: GraphQLNamedInputType, isNonNull: boolean): boolean {
    const variable = this.#variables.get(name);
    if (variable?.type !== type || (isNonNull && !variable.isNonNull)) return false;
    this.used.add(name);
    return true;
  }
}

type Field = ReturnType<GraphQLObjectType['getFields']>[string];

/** The one field that every type has. */
function isTypeName({ name, arguments: given, selectionSet }: FieldNode): boolean {
  return name.value === '__typename' && !hasSome(given) && selectionSet === undefined;
}

function hasSome(list: readonly unknown[] | undefined): boolean {
  return list !== undefined && list.length > 0;
}
