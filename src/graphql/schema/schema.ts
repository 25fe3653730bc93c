/** The executable schema: the text of `type-defs.ts` with resolvers, scalars and the directive. */

import {
  assertScalarType,
  assertValidSchema,
  buildSchema,
  defaultFieldResolver,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
} from 'graphql';
import { andThen } from '../../maybe-promise.ts';
import type { GraphqlContext } from '../context.ts';
import { type Resolvers, resolvers, subscribers } from './resolvers.ts';
import { scalarRules } from './scalars.ts';
import { typeDefs } from './type-defs.ts';

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

type FieldResolver = GraphQLFieldResolver<unknown, GraphqlContext>;

/** Throws for a name that the schema does not have. */
function attach(schema: GraphQLSchema, role: 'resolve' | 'subscribe', map: Resolvers): void {
  for (const [typeName, fields] of Object.entries(map)) {
    const type = schema.getType(typeName);
    if (!isObjectType(type)) throw new Error(`The schema has no object type ${typeName}.`);
    for (const [name, resolver] of Object.entries(fields)) {
      const field = type.getFields()[name];
      if (field === undefined) throw new Error(`The schema has no field ${typeName}.${name}.`);
      // The schema determines the source and the arguments of a resolver.
      field[role] = resolver as unknown as FieldResolver;
    }
  }
}

/** Wraps the resolvers of the fields that carry `@uppercase` (Spec §2.1). */
function applyUppercase(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const directives = field.astNode?.directives ?? [];
      if (!directives.some((directive) => directive.name.value === 'uppercase')) continue;
      const resolve: FieldResolver = field.resolve ?? defaultFieldResolver;
      const resolveUppercased: FieldResolver = (source, args, context, info) =>
        andThen<unknown, unknown>(resolve(source, args, context, info), (value) =>
          typeof value === 'string' ? toUppercase(value, context) : value,
        );
      // The engine executes with this context.
      field.resolve = resolveUppercased as GraphQLFieldResolver<unknown, unknown>;
    }
  }
}

/** Charges a long text before a new one is made, up to three times as long: `ΐ` (U+0390). */
function toUppercase(text: string, context: GraphqlContext): string {
  const upper = context.chargeText(text).toUpperCase();
  context.scope.budget.charge(0, upper.length - text.length);
  return upper;
}
