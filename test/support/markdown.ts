/** Reads tables and fenced blocks out of a page, for the tests that hold the pages to the code. */

export interface Block {
  /** The word behind the fence, such as `sh`. */
  readonly language: string;
  readonly text: string;
}

/** What stands between a heading and the next one of the same or a higher level. */
export function sectionOf(page: string, heading: string): string {
  const lines = page.split('\n');
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`there is no heading "${heading}"`);
  const level = heading.indexOf(' ');
  let fenced = false;
  const length = lines.slice(start + 1).findIndex((line) => {
    if (line.startsWith('```')) fenced = !fenced;
    const found = /^(#+) /.exec(line)?.[1]?.length ?? Infinity;
    return !fenced && found <= level;
  });
  return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join('\n');
}

/** The rows of the first table of a text, without its head; cells without blanks around them. */
export function tableOf(text: string): string[][] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith('|'));
  const rows = lines.slice(start);
  const end = rows.findIndex((line) => !line.startsWith('|'));
  return rows
    .slice(2, end === -1 ? undefined : end)
    .map((line) => line.split(/(?<!\\)\|/).slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim().replaceAll('\\|', '|')));
}

export function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(
    ([, language = '', content = '']) => ({ language, text: content }),
  );
}

/** `code` → code. */
export function bare(cell: string): string {
  return cell.replace(/^`(.*)`$/, '$1');
}
