// Measured against projected memory, one mark a conversion, with the line on which both are equal.
// data: {points: [{format, projected, measured, dataset, path}]}
import * as Plot from "@observablehq/plot";
import { SERIES, SHAPES, bytes, formats, frame, recordingPage, withLegend } from "./common.js";

export function memory({ points }, { width }) {
  const domain = formats(points);
  const sizes = points.flatMap((one) => [one.projected, one.measured]);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const chart = Plot.plot({
    ...frame(width, "Measured against projected memory"),
    grid: true,
    x: { type: "log", domain: [least, most], label: "projected →", tickFormat: bytes, ticks: width / 110 },
    y: { type: "log", domain: [least, most], label: "↑ measured", tickFormat: bytes, ticks: 6 },
    color: { domain, range: SERIES },
    symbol: { domain, range: SHAPES },
    marks: [
      Plot.line([least, most], { x: (d) => d, y: (d) => d, stroke: "var(--guide)", strokeDasharray: "5 4" }),
      Plot.dot(points, {
        x: "projected",
        y: "measured",
        stroke: "format",
        symbol: "format",
        r: 2.6,
        strokeOpacity: 0.8,
        href: recordingPage,
        title: (one) => `${one.dataset} ${one.path}\nprojected ${bytes(one.projected)}, measured ${bytes(one.measured)}`,
      }),
    ],
  });
  return withLegend(chart, domain, SERIES, { shapes: true });
}
