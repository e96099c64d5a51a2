// Seconds of a conversion against the bytes of its recording, one mark each.
// data: {points: [{format, size, seconds, dataset, path}]}
import * as Plot from "@observablehq/plot";
import { SERIES, SHAPES, bytes, formats, frame, recordingPage, seconds as time, withLegend } from "./common.js";

export function seconds({ points }, { width }) {
  const domain = formats(points);
  const chart = Plot.plot({
    ...frame(width, "Seconds against size"),
    grid: true,
    x: { type: "log", label: "size of the recording →", tickFormat: bytes, ticks: width / 110 },
    y: { type: "log", label: "↑ time of the attempt", tickFormat: time, ticks: 6 },
    color: { domain, range: SERIES },
    symbol: { domain, range: SHAPES },
    marks: [
      Plot.dot(
        points.filter((one) => one.size > 0 && one.seconds > 0),
        {
          x: "size",
          y: "seconds",
          stroke: "format",
          symbol: "format",
          r: 2.6,
          strokeOpacity: 0.8,
          href: recordingPage,
          title: (one) => `${one.dataset} ${one.path}\n${bytes(one.size)} in ${time(one.seconds)}`,
        },
      ),
    ],
  });
  return withLegend(chart, domain, SERIES, { shapes: true });
}
