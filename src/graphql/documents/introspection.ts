/** Counts what an operation asks of the schema itself (`__schema`, `__type`). */

import {
  assertObjectType,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  getNamedType,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isObjectType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
} from 'graphql';

/**
 * Returns the objects that the introspection fields of a valid document result in, or a larger
 * number than `max`. graphql-js resolves these fields without the budget, and each alias can
 * multiply them: they are counted by resolving them, one level after the other.
 */
export function countIntrospection(
  schema: GraphQLSchema,
  document: DocumentNode,
  max: number,
): number {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const operations: SelectionSetNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition.selectionSet);
    else if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
  }
  let count = 0;

  const countFields = (
    sets: readonly SelectionSetNode[],
    type: GraphQLObjectType,
    sources: readonly unknown[],
  ): void => {
    count += sources.length;
    for (const nodes of collectFields(sets, fragments).values()) {
      const field = type.getFields()[nodes[0]?.name.value ?? ''];
      const named = getNamedType(field?.type);
      if (count > max || !isObjectType(named)) continue;
      const found = sources.flatMap((source) => resolve(field, source));
      countFields(toSets(nodes), named, found);
    }
  };
  // The resolvers of introspection use nothing else.
  const info = { schema } as GraphQLResolveInfo;
  const resolve = (
    field: ReturnType<GraphQLObjectType['getFields']>[string] | undefined,
    source: unknown,
  ): unknown[] => {
    const value = field?.resolve?.(source, { includeDeprecated: true }, undefined, info);
    return (Array.isArray(value) ? value : [value]).filter((item) => item != null);
  };

  for (const operation of operations) {
    for (const nodes of collectFields([operation], fragments).values()) {
      const name = nodes[0]?.name.value;
      if (name === SchemaMetaFieldDef.name) countFields(toSets(nodes), schemaType, [schema]);
      // The name of the type may be a variable: all of them are counted.
      const types = Object.values(schema.getTypeMap());
      if (name === TypeMetaFieldDef.name) countFields(toSets(nodes), typeType, types);
    }
  }
  return count;
}

const schemaType = assertObjectType(getNamedType(SchemaMetaFieldDef.type));
const typeType = assertObjectType(getNamedType(TypeMetaFieldDef.type));

function toSets(nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
}

/** The fields of merged selection sets by response name (GraphQL §6.3.2). */
function collectFields(
  sets: readonly SelectionSetNode[],
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const collect = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value;
        const nodes = fields.get(name);
        if (nodes === undefined) fields.set(name, [selection]);
        else nodes.push(selection);
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        collect(fragments.get(selection.name.value)?.selectionSet);
      }
    }
  };
  sets.forEach(collect);
  return fields;
}
