/** Counts what an operation asks of the schema itself (`__schema`, `__type`). */

import {
  assertObjectType,
  type DocumentNode,
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
import { collectFields, findFragments, selectionsOf } from './overlaps.ts';

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
  const fragments = findFragments(document);
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
      countFields(selectionsOf(nodes), named, found);
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

  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    for (const nodes of collectFields([definition.selectionSet], fragments).values()) {
      const name = nodes[0]?.name.value;
      if (name === SchemaMetaFieldDef.name) countFields(selectionsOf(nodes), schemaType, [schema]);
      // The name of the type may be a variable: all of them are counted.
      const types = Object.values(schema.getTypeMap());
      if (name === TypeMetaFieldDef.name) countFields(selectionsOf(nodes), typeType, types);
    }
  }
  return count;
}

const schemaType = assertObjectType(getNamedType(SchemaMetaFieldDef.type));
const typeType = assertObjectType(getNamedType(TypeMetaFieldDef.type));
