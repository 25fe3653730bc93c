/** The executable schema: the text of `type-defs.ts` with resolvers, scalars and the directive. */

import {
  assertScalarType,
  assertValidSchema,
  buildSchema,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
} from 'graphql';
import type { GraphqlContext } from '../context.ts';
import { type Resolvers, resolvers, subscribers } from './resolvers.ts';
import { scalarRules } from './scalars.ts';
import { typeDefs } from './type-defs.ts';
import { applyUppercase } from './uppercase.ts';

export function createSchema(): GraphQLSchema {
  const schema = buildSchema(typeDefs);
  for (const [name, rules] of Object.entries(scalarRules)) {
    Object.assign(assertScalarType(schema.getType(name)), rules);
  }
  attach(schema, 'resolve', resolvers);
  attach(schema, 'subscribe', subscribers);
  applyUppercase(schema);
  assertValidSchema(schema);
  return schema;
}

/** Throws for a name that the schema does not have. */
function attach(schema: GraphQLSchema, role: 'resolve' | 'subscribe', map: Resolvers): void {
  for (const [typeName, fields] of Object.entries(map)) {
    const type = schema.getType(typeName);
    if (!isObjectType(type)) throw new Error(`The schema has no object type ${typeName}.`);
    for (const [name, resolver] of Object.entries(fields)) {
      const field = type.getFields()[name];
      if (field === undefined) throw new Error(`The schema has no field ${typeName}.${name}.`);
      // The schema determines the source and the arguments of a resolver.
      field[role] = resolver as unknown as GraphQLFieldResolver<unknown, GraphqlContext>;
    }
  }
}
