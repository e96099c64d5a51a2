// What is drawn of one channel: for each pixel column the least and the greatest value that falls on it.
//
// Values are the stored integers ("digital"); who draws them applies scale and offset. NaN marks a pixel without data. Which
// columns fall on a pixel is the same for every channel, so it is worked out once ("ranges", "places") and used for each.

/**
 * Which columns of a piece fall on each pixel of [from, to): `begin[i]` to `end[i]` for pixel from + i, counted from the piece's
 * first column.
 *
 * `start` is the column, with its fraction, at the left edge of pixel 0, `perPixel` how many columns a pixel is wide. A pixel
 * takes every column that it touches.
 */
export function rangesOf(piece, { start, perPixel }, from, to) {
  const begin = new Int32Array(to - from);
  const end = new Int32Array(to - from);
  for (let pixel = from; pixel < to; pixel += 1) {
    const left = start + pixel * perPixel;
    begin[pixel - from] = Math.max(piece.first, Math.floor(left + 1e-9)) - piece.first;
    end[pixel - from] = Math.min(piece.end, Math.ceil(left + perPixel - 1e-9)) - piece.first;
  }
  return { begin, end, from };
}

/** Widen `lo` and `hi` by what a piece has of a row, for the pixels of `ranges`. */
export function fillEnvelope(lo, hi, piece, row, { begin, end, from }) {
  const { data } = piece;
  const lower = piece.offset(row, 0);
  const upper = piece.offset(row, 1);
  for (let at = 0; at < begin.length; at += 1) {
    const stop = end[at];
    let column = begin[at];
    if (column >= stop) continue;
    let least = data[lower + column];
    let most = data[upper + column];
    for (column += 1; column < stop; column += 1) {
      const low = data[lower + column];
      const high = data[upper + column];
      if (low < least) least = low;
      if (high > most) most = high;
    }
    const pixel = from + at;
    // written so that NaN, a pixel that no piece has reached before, is replaced
    if (!(lo[pixel] <= least)) lo[pixel] = least;
    if (!(hi[pixel] >= most)) hi[pixel] = most;
  }
}

/**
 * Where the edges of pixels lie between `count` samples that are more than a pixel apart, and which sample lies inside each.
 *
 * Sample i stands at place i; pixel p reaches from start + p * perPixel to the next one's edge. -1 stands for none.
 */
export function placesOf({ start, perPixel }, count, pixels) {
  const before = new Int32Array(pixels + 1).fill(-1);
  const share = new Float32Array(pixels + 1);
  const inside = new Int32Array(pixels).fill(-1);
  for (let edge = 0; edge <= pixels; edge += 1) {
    const place = start + edge * perPixel;
    const index = Math.floor(place + 1e-9);
    const rest = Math.max(0, place - index);
    if (index < 0 || index > count - 1 || (index === count - 1 && rest > 1e-9)) continue;
    before[edge] = index;
    share[edge] = rest > 1e-9 ? rest : 0;
  }
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const index = Math.ceil(start + pixel * perPixel - 1e-9);
    if (index >= 0 && index < count && index < start + (pixel + 1) * perPixel) inside[pixel] = index;
  }
  return { before, share, inside };
}

/** Fill `lo` and `hi` by the straight lines between `values`, NaN where one is not loaded, along the `places` of pixels. */
export function fillLines(lo, hi, values, { before, share, inside }) {
  let left = between(values, before[0], share[0]);
  for (let pixel = 0; pixel < inside.length; pixel += 1) {
    const right = between(values, before[pixel + 1], share[pixel + 1]);
    let least = left < right ? left : right;
    let most = left < right ? right : left;
    if (least !== least || most !== most) { // the line begins or ends inside this pixel
      least = left === left ? left : right;
      most = least;
    }
    if (inside[pixel] >= 0) {
      const value = values[inside[pixel]];
      if (value < least || least !== least) least = value;
      if (value > most || most !== most) most = value;
    }
    if (least === least) {
      lo[pixel] = least;
      hi[pixel] = most;
    }
    left = right;
  }
}

function between(values, index, share) {
  if (index < 0) return NaN;
  const low = values[index];
  return share ? low + (values[index + 1] - low) * share : low;
}
