/** The package has no types of its own. Only what is used here. */
declare module 'json-merge-patch' {
  const library: { apply(target: unknown, patch: unknown): unknown };
  export default library;
}
