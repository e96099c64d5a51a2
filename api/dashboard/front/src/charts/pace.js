// How many attempts ended in each part of a run.
// data: {parts: [{at, width, done, other}]}, at and width in seconds
import * as Plot from "@observablehq/plot";
import { frame, spell, withLegend } from "./common.js";

export function pace({ parts }, { width }) {
  const { scale, unit } = spell(Math.max(...parts.map((one) => one.at + one.width)));
  const bars = parts.flatMap((one) =>
    [
      ["converted", one.done],
      ["not converted", one.other],
    ].map(([end, count]) => ({ end, count, from: one.at / scale, to: (one.at + one.width) / scale })),
  );
  const chart = Plot.plot({
    ...frame(width, "Attempts that ended over the run", 240),
    x: { label: `time since the run began (${unit}) →` },
    y: { label: "↑ attempts", grid: true },
    color: { domain: ["converted", "not converted"], range: ["var(--served)", "var(--failed)"], legend: false },
    marks: [
      Plot.rectY(bars, { x1: "from", x2: "to", y: "count", fill: "end", inset: 0.5, title: (one) => `${one.count} ${one.end}` }),
      Plot.ruleY([0], { stroke: "var(--line-2)" }),
    ],
  });
  return withLegend(chart, ["converted", "not converted"], ["var(--served)", "var(--failed)"]);
}
