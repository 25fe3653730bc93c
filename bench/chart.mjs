/**
 * Draws bench/figures.json, which `npm run bench:peer -- --json bench/figures.json` has written, with
 * the same bytes for the same figures: `node bench/chart.mjs > docs/performance.svg`.
 */

import { readFileSync } from 'node:fs';

const figures = JSON.parse(readFileSync(new URL('figures.json', import.meta.url), 'utf8'));
const { versions, machine, commit, date } = figures;
const peer = `Fastify ${majorOf('fastify')} with Mercurius ${majorOf('mercurius')}`;
const panels = figures.tables.map(({ title, rows }) => ({
  title,
  rows: rows.map(([request, , inkwell, anew, jit]) => ({ request, inkwell, anew, jit })),
}));

function majorOf(name) {
  return versions[name].split('.')[0];
}

const [width, left, right] = [880, 280, 810];
const [rowHeight, panelHead, head, foot] = [34, 44, 64, 40];
/** Longer bars are cut, and say so. */
const ratioMax = 2;

const style = `
text{font:13px ui-sans-serif,system-ui,Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:15px}.name{text-anchor:end}.axis{fill:#57606a;font-size:12px}
.mid{text-anchor:middle}.page{fill:#f6f8fa}.grid{stroke:#d0d7de}.one{stroke:#57606a;stroke-width:1.5}
.inkwell{fill:#0969da}.anew{fill:#80ccff}.jit{fill:none;stroke:#bc4c00;stroke-width:2.5}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.axis{fill:#9198a1}.page{fill:#151b23}.grid{stroke:#3d444d}.one{stroke:#9198a1}
.inkwell{fill:#4493f8}.anew{fill:#1f4a80}.jit{stroke:#f0883e}}`.trim();

const toX = (ratio) => Math.round(left + ((right - left) * Math.min(ratio, ratioMax)) / ratioMax);
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const toText = ([x, y], text, kind = '') =>
  `<text x="${x}" y="${y}"${kind && ` class="${kind}"`}>${escape(text)}</text>`;
const toBar = ([y, height], ratio, kind) =>
  `<rect x="${left}" y="${y}" width="${toX(ratio) - left}" height="${height}" rx="2" class="${kind}"/>`;
const toFigure = (ratio) => `${ratio.toFixed(2)}${ratio > ratioMax ? ' →' : ''}`;

function drawRow({ request, inkwell, anew, jit }, y) {
  const parts = [toText([left - 12, y + 20], request, 'name')];
  parts.push(toBar([y + 7, anew === null ? 18 : 11], inkwell, 'inkwell'));
  if (anew !== null) parts.push(toBar([y + 19, 7], anew, 'anew'));
  if (jit !== null) parts.push(`<path d="M${toX(jit)} ${y + 4}v24" class="jit"/>`);
  const shown = anew === null ? [inkwell] : [inkwell, anew];
  const longest = Math.max(...shown);
  // The figures follow the bars, and the mark where that is close behind.
  const end = toX(jit !== null && jit > longest && jit < longest + 0.3 ? jit : longest);
  parts.push(toText([end + 8, y + 21], shown.map(toFigure).join(' · ')));
  return parts;
}

function drawLegend() {
  return [
    toText([24, 30], `CPU time of a request, as a multiple of that of ${peer}`, 'title'),
    `<rect x="24" y="42" width="14" height="11" rx="2" class="inkwell"/>`,
    toText([44, 52], 'Inkwell', 'axis'),
    `<rect x="108" y="44" width="14" height="7" rx="2" class="anew"/>`,
    toText([128, 52], 'Inkwell, response cache off', 'axis'),
    '<path d="M312 40v15" class="jit"/>',
    toText([322, 52], 'the peer with its JIT', 'axis'),
    toText([462, 52], 'Less is better; 1.00 is the peer.', 'axis'),
  ];
}

function draw() {
  const parts = [];
  let y = head;
  for (const { title, rows } of panels) {
    const end = y + panelHead + rows.length * rowHeight;
    parts.push(toText([24, y + 34], title, 'title'));
    for (const tick of [0, 0.5, 1, 1.5, 2]) {
      const kind = tick === 1 ? 'one' : 'grid';
      parts.push(`<path d="M${toX(tick)} ${y + panelHead - 4}V${end}" class="${kind}"/>`);
      parts.push(toText([toX(tick), y + panelHead - 10], tick.toFixed(1), 'axis mid'));
    }
    for (const [at, row] of rows.entries()) {
      parts.push(...drawRow(row, y + panelHead + at * rowHeight));
    }
    y = end;
  }
  const source =
    `Commit ${commit} of ${date}, Node ${versions.node}, ${machine.cpus} × ${machine.cpu}, ` +
    `Fastify ${versions.fastify}, Mercurius ${versions.mercurius}`;
  parts.push(toText([24, y + 26], source, 'axis'));
  const height = y + foot;
  const all = panels.flatMap(({ rows }) => rows);
  const less = all.filter(({ inkwell }) => inkwell < 1).length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>CPU time of Inkwell beside ${escape(peer)}</title>`,
    `<desc>Inkwell takes less CPU time in ${less} of ${all.length} kinds of requests.</desc>`,
    `<style>${style}</style>`,
    `<rect width="${width}" height="${height}" rx="10" class="page"/>`,
    ...drawLegend(),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

process.stdout.write(draw());
