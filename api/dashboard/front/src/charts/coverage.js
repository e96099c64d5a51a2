// Recordings by the list they are in, over days: steps, since a day without a row is as the one before it.
// data: {days: [{day: "2026-11-30", served, failed, pending}]}
import * as Plot from "@observablehq/plot";
import { frame, whole, withLegend } from "./common.js";

const LISTS = ["served", "failed", "pending"];

export function coverage({ days }, { width }) {
  const rows = days.flatMap((one) => LISTS.map((list) => ({ day: new Date(one.day), list, count: one[list] })));
  const last = new Date(days.at(-1).day);
  // one day alone is drawn as a day wide
  const ended = new Date(last.getTime() + 86_400_000);
  rows.push(...LISTS.map((list) => ({ day: ended, list, count: days.at(-1)[list] })));
  const chart = Plot.plot({
    ...frame(width, "Coverage over time"),
    x: { label: null, type: "utc" },
    y: { label: "↑ recordings", grid: true, tickFormat: whole, ticks: 5 },
    color: { domain: LISTS, range: LISTS.map((list) => `var(--${list})`) },
    marks: [
      Plot.areaY(rows, { x: "day", y: "count", fill: "list", curve: "step-after", order: LISTS, title: "list" }),
      Plot.ruleY([0], { stroke: "var(--guide)" }),
    ],
  });
  return withLegend(chart, LISTS, LISTS.map((list) => `var(--${list})`));
}
