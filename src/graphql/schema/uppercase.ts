/** Implements the directive `@uppercase` (Spec §2.1) for every field that has it. */

import {
  defaultFieldResolver,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
} from 'graphql';
import { andThen } from '../../maybe-promise.ts';
import type { GraphqlContext } from '../context.ts';

/** Wraps the resolvers of fields with the directive. Call it when all resolvers are attached. */
export function applyUppercase(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const directives = field.astNode?.directives ?? [];
      if (!directives.some((directive) => directive.name.value === 'uppercase')) continue;
      const resolve: Resolver = toUppercased(field.resolve ?? defaultFieldResolver);
      // The engine executes with this context.
      field.resolve = resolve as GraphQLFieldResolver<unknown, unknown>;
    }
  }
}

type Resolver = GraphQLFieldResolver<unknown, GraphqlContext>;

function toUppercased(resolve: Resolver): Resolver {
  return (...call) =>
    andThen<unknown, unknown>(resolve(...call), (value) => {
      const [, , context] = call;
      if (typeof value !== 'string') return value;
      // Throws if the request was already refused, so that nothing more is made for it.
      context.chargeText('');
      // A new text, up to three times as long: `ΐ` (U+0390) becomes three characters.
      return context.chargeText(value.toUpperCase());
    });
}
