/** Code as esbuild writes it, with the names that imported files have when they are built. */
export function toBuiltImports(code) {
  return code.replaceAll(/^(.*\b(?:from|import)\b.*"\..*)\.ts("\)?.*)$/gm, '$1.js$2');
}
