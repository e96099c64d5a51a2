// How many physical units a row is high, for each type of channel.

import { niceAtLeast } from "./numbers.js";

// Rows that are lower than this are meant to overlap: a signal of three pixels tells nothing. A page has none so low unless
// somebody asks for more rows (SMALLEST_ROW_PX in viewer.js), so nothing opens as one block, on a phone neither.
const LOWEST_PX = 10;

/**
 * A scale for each type of the channels, from what is drawn: in the typical channel of the type nine tenths of the columns
 * fit their row, or `LOWEST_PX` where rows are lower. Types of which nothing is drawn are left out.
 */
export function autoScales(channels, lines, rowHeight) {
  const byType = new Map();
  for (const channel of channels) {
    const line = lines.get(channel.row);
    const height = line && typicalHeight(line) * Math.abs(channel.scale);
    if (!(height > 0)) continue;
    if (!byType.has(channel.type)) byType.set(channel.type, []);
    byType.get(channel.type).push(height);
  }
  const scales = {};
  for (const [type, heights] of byType) scales[type] = niceAtLeast(quantile(heights, 0.5) * 0.9 * Math.min(1, rowHeight / LOWEST_PX));
  return scales;
}

/** Height that holds nine tenths of the columns about the middle, in stored units. */
function typicalHeight({ lo, hi }) {
  const lows = lo.filter((value) => value === value);
  const highs = hi.filter((value) => value === value);
  return lows.length ? quantile(highs, 0.95) - quantile(lows, 0.05) : 0;
}

export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
