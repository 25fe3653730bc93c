/** Types for the package, which has none: only for the function that is used here. */
declare module 'json-merge-patch' {
  const library: { apply(target: unknown, patch: unknown): unknown };
  export default library;
}
