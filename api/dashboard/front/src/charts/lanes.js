// Each worker of a run over time: what was permitted to its conversions, and the peaks they measured.
// data: {steps: [{worker, at, permitted, measured}]}, at in seconds, sorted by worker and time
import * as Plot from "@observablehq/plot";
import { bytes, frame, spell, withLegend } from "./common.js";

export function lanes({ steps }, { width }) {
  const workers = [...new Set(steps.map((one) => one.worker))];
  const last = Math.max(...steps.map((one) => one.at));
  const { scale, unit } = spell(last);
  const rows = steps.map((one) => ({ ...one, at: one.at / scale }));
  const area = (what, colour) =>
    Plot.areaY(rows, { x: "at", y: what, fy: "worker", curve: "step-after", fill: colour, fillOpacity: 0.35 });
  const line = (what, colour) => Plot.lineY(rows, { x: "at", y: what, fy: "worker", curve: "step-after", stroke: colour });
  const chart = Plot.plot({
    ...frame(width, "Memory permitted and measured on each worker", 70 + 84 * workers.length),
    marginTop: 26,
    x: { label: `time since the first recording started (${unit}) →`, domain: [0, last / scale] },
    y: { label: null, tickFormat: bytes, ticks: 3, grid: true, zero: true },
    fy: { label: null, axis: null, padding: 0.35 },
    marks: [
      area("permitted", "var(--series-6)"),
      line("permitted", "var(--series-6)"),
      area("measured", "var(--series-2)"),
      line("measured", "var(--series-2)"),
      Plot.text(workers, { fy: (d) => d, text: (d) => d, frameAnchor: "top-left", dy: -13, fill: "var(--ink)" }),
      Plot.tip(rows, Plot.pointerX({ x: "at", y: "permitted", fy: "worker", title: (one) => `${one.worker}\npermitted ${bytes(one.permitted)}\nmeasured ${bytes(one.measured)}` })),
    ],
  });
  return withLegend(chart, ["permitted", "measured"], ["var(--series-6)", "var(--series-2)"]);
}
