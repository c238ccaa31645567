/** What happened in each second, drawn: completed orders above, their slowest hundredth below, and when a node was killed. */
import { percentile } from "../measure.ts";
import type { Second } from "./load.ts";

const width = 1_000;
const panel = 220;
const margin = { left: 70, right: 20, top: 40, between: 50, bottom: 40 };

type Panel = { readonly title: string; readonly values: readonly number[]; readonly top: number; readonly colour: string };

/** An SVG document. `kills` are seconds from the beginning. */
export function plot(title: string, seconds: readonly Second[], kills: readonly number[]): string {
  const rate = seconds.map(({ latencies }) => latencies.length);
  const slow = seconds.map(
    ({ latencies }) =>
      percentile(
        [...latencies].sort((a, b) => a - b),
        0.99,
      ) || 0,
  );
  const panels: Panel[] = [
    { title: "orders completed in each second", values: rate, top: margin.top, colour: "#1f6f8b" },
    { title: "p99 of start to result, ms", values: slow, top: margin.top + panel + margin.between, colour: "#b5541c" },
  ];
  const height = margin.top + 2 * panel + margin.between + margin.bottom;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    `<text x="${margin.left}" y="20" font-size="15">${title}</text>`,
    ...panels.flatMap((each) => draw(each, seconds.length, kills)),
    `<text x="${width / 2}" y="${height - 10}" text-anchor="middle">seconds; dashed: a node is killed</text>`,
    "</svg>",
    "",
  ].join("\n");
}

function draw({ title, values, top, colour }: Panel, count: number, kills: readonly number[]): string[] {
  const most = roundUp(Math.max(1, ...values));
  const x = (second: number) => margin.left + (second / Math.max(1, count - 1)) * (width - margin.left - margin.right);
  const y = (value: number) => top + panel - (value / most) * panel;
  const points = values.map((value, second) => `${x(second).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const lines = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
    `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(part * most)}" y2="${y(part * most)}" stroke="#ddd"/>`,
    `<text x="${margin.left - 8}" y="${y(part * most) + 4}" text-anchor="end">${(part * most).toLocaleString("en")}</text>`,
  ]);
  return [
    `<text x="${margin.left}" y="${top - 8}">${title}</text>`,
    ...lines,
    ...kills.map(
      (at) =>
        `<line x1="${x(at).toFixed(1)}" x2="${x(at).toFixed(1)}" y1="${top}" y2="${top + panel}" stroke="#888" stroke-dasharray="4 3"/>`,
    ),
    `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
  ];
}

/** The next 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((times) => times * power >= value) ?? 10) * power;
}
