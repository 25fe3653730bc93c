/** Implements the directive `@uppercase` (Spec §2.1) for every field that has it. */

import { defaultFieldResolver, type GraphQLSchema, isObjectType } from 'graphql';
import { andThen } from '../../maybe-promise.ts';

/** Wraps the resolvers of fields with the directive. Call it when all resolvers are attached. */
export function applyUppercase(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const directives = field.astNode?.directives ?? [];
      if (!directives.some((directive) => directive.name.value === 'uppercase')) continue;
      const resolve = field.resolve ?? defaultFieldResolver;
      field.resolve = (...call) => andThen<unknown, unknown>(resolve(...call), toUpperCase);
    }
  }
}

function toUpperCase(value: unknown): unknown {
  return typeof value === 'string' ? value.toUpperCase() : value;
}
