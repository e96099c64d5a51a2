// Attempts that ended with a verdict, by day and code, as stacked bars.
// data: {counts: [{day: "2026-11-30", code, count}]}
import * as Plot from "@observablehq/plot";
import { SERIES, frame, whole, withLegend } from "./common.js";

const DAY_MS = 86_400_000;

export function failures({ counts }, { width }) {
  const total = new Map();
  for (const one of counts) total.set(one.code, (total.get(one.code) ?? 0) + one.count);
  const codes = [...total].sort((a, b) => b[1] - a[1]).map(([code]) => code);
  // beyond seven, colours cannot be told apart: the rest is one series, and the table has each
  const shown = codes.slice(0, 7);
  const rows = counts.map((one) => ({
    ...one,
    day: new Date(one.day),
    code: shown.includes(one.code) ? one.code : "others",
  }));
  const domain = codes.length > shown.length ? [...shown, "others"] : shown;
  const chart = Plot.plot({
    ...frame(width, "Failures by code over time"),
    x: { label: null, type: "utc" },
    y: { label: "↑ attempts a day", grid: true, tickFormat: whole, ticks: 5 },
    color: { domain, range: SERIES },
    marks: [
      Plot.rectY(rows, {
        x1: "day",
        x2: (one) => new Date(one.day.getTime() + DAY_MS),
        y: "count",
        fill: "code",
        order: domain,
        insetRight: 1,
        title: (one) => `${one.code}: ${one.count}`,
      }),
      Plot.ruleY([0], { stroke: "var(--guide)" }),
    ],
  });
  return withLegend(chart, domain, SERIES);
}
