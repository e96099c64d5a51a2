// From a window, a level and the chunks that are there to the envelope of each channel. No drawing, no network.

import { fillEnvelope, fillLines, placesOf, rangesOf } from "./envelope.js";
import { chooseLevel, chunksOf, columnsOf } from "./levels.js";

/** What a window needs: the level, the chunks it touches, and their neighbours on either side. */
export function planWindow(group, startS, spanS, pixels) {
  const level = chooseLevel(group.levels, group.rateHz, spanS, pixels);
  const [first, end] = columnsOf(level, group.rateHz, startS, spanS);
  const numbers = chunksOf(level, first, end);
  const last = Math.floor(Math.max(0, level.columns - 1) / level.chunk);
  const beside = numbers.length ? [numbers[numbers.length - 1] + 1, numbers[0] - 1].filter((each) => each >= 0 && each <= last) : [];
  return { level, first, end, numbers, beside };
}

/**
 * The envelope of `rows` over the window, a pixel column each.
 *
 * Where a chunk of the best level is missing, the next level that has something is drawn instead, so that a zoom shows
 * a coarse picture at once. `isWhole` says whether everything came from the best level.
 */
export function sceneOf(group, rows, plan, startS, spanS, pixels, get) {
  const { level } = plan;
  const pieces = plan.numbers.map((number) => [number, get(group, level, number)]);
  const isWhole = pieces.every(([, piece]) => piece);
  const lines = new Map();
  for (const row of rows) lines.set(row, { lo: new Float32Array(pixels).fill(NaN), hi: new Float32Array(pixels).fill(NaN) });
  if (!isWhole) {
    for (const other of substitutes(group.levels, level)) {
      const [first, end] = columnsOf(other, group.rateHz, startS, spanS);
      const found = chunksOf(other, first, end).map((number) => get(group, other, number)).filter(Boolean);
      if (!found.length) continue;
      fillRows(lines, rows, found, other, group, startS, spanS, pixels);
      break;
    }
  }
  const found = pieces.map(([, piece]) => piece).filter(Boolean);
  if (found.length) {
    if (!isWhole) blank(lines, rows, found, level, group, startS, spanS, pixels);
    fillRows(lines, rows, found, level, group, startS, spanS, pixels);
  }
  return { level, lines, isWhole, hasLines: level.factor === 1 && (spanS * group.rateHz) / pixels < 1 };
}

function substitutes(levels, level) {
  const coarser = levels.filter((each) => each.factor > level.factor).sort((a, b) => a.factor - b.factor);
  const finer = levels.filter((each) => each.factor < level.factor).sort((a, b) => b.factor - a.factor);
  return [...coarser, ...finer];
}

function geometry(level, group, startS, spanS, pixels) {
  const perSecond = group.rateHz / level.factor;
  return { start: startS * perSecond, perPixel: (spanS * perSecond) / pixels };
}

function reach(piece, { start, perPixel }, pixels) {
  const from = Math.max(0, Math.floor((piece.first - start) / perPixel));
  const to = Math.min(pixels, Math.ceil((piece.end - start) / perPixel));
  return [from, Math.max(from, to)];
}

/** Take away what a substitute drew where the best level has its own. */
function blank(lines, rows, found, level, group, startS, spanS, pixels) {
  const shape = geometry(level, group, startS, spanS, pixels);
  for (const piece of found) {
    const [from, to] = reach(piece, shape, pixels);
    for (const row of rows) {
      lines.get(row).lo.fill(NaN, from, to);
      lines.get(row).hi.fill(NaN, from, to);
    }
  }
}

function fillRows(lines, rows, found, level, group, startS, spanS, pixels) {
  const shape = geometry(level, group, startS, spanS, pixels);
  if (level.factor === 1 && shape.perPixel < 1) {
    joinRows(lines, rows, found, level, shape, pixels);
    return;
  }
  for (const piece of found) {
    const ranges = rangesOf(piece, shape, ...reach(piece, shape, pixels));
    for (const row of rows) {
      const { lo, hi } = lines.get(row);
      fillEnvelope(lo, hi, piece, row, ranges);
    }
  }
}

function joinRows(lines, rows, found, level, shape, pixels) {
  const first = Math.max(found[0].first, Math.floor(shape.start) - 1);
  const end = Math.min(level.columns, found[found.length - 1].end, Math.ceil(shape.start + shape.perPixel * pixels) + 2);
  const values = new Float32Array(Math.max(0, end - first));
  const places = placesOf({ start: shape.start - first, perPixel: shape.perPixel }, values.length, pixels);
  for (const row of rows) {
    values.fill(NaN);
    for (const piece of found) {
      const from = Math.max(first, piece.first);
      const to = Math.min(end, piece.end);
      if (to <= from) continue;
      const at = piece.offset(row, 0) - piece.first;
      values.set(piece.data.subarray(at + from, at + to), from - first);
    }
    const { lo, hi } = lines.get(row);
    fillLines(lo, hi, values, places);
  }
}

/** The stored samples of a row in the window: {first, values}, or null unless all of them are there. */
export function samplesOf(group, row, plan, get) {
  if (plan.level.factor !== 1) return null;
  const values = [];
  for (const number of plan.numbers) {
    const piece = get(group, plan.level, number);
    if (!piece) return null;
    const at = piece.offset(row, 0);
    for (let column = Math.max(plan.first, piece.first); column < Math.min(plan.end, piece.end); column += 1) {
      values.push(piece.data[at + column - piece.first]);
    }
  }
  return { first: plan.first, values };
}
