// Which level of the pyramid a window is drawn from, and which of its columns and chunks that touches.
//
// Level 0 is the signal; a column of it is one sample. A column of view level L is the least and the greatest of `factor`
// samples. Times are seconds from the start of the recording. Everything here is arithmetic: no DOM, no network.

// With fewer than this many columns for a pixel a level is too coarse. Neighbouring levels differ by a factor of four, so
// between 0.6 and 2.4 columns fall on a pixel: forty minutes at 250 Hz are three chunks, on a laptop and on a wide screen.
export const FEWEST_COLUMNS_PER_PIXEL = 0.6;

// A window is never shorter than this many samples.
export const FEWEST_SAMPLES = 8;

/** The coarsest level that still has enough columns for `pixels`; the signal itself when none has. */
export function chooseLevel(levels, rateHz, spanS, pixels) {
  const fine = levels.filter((level) => (spanS * rateHz) / level.factor >= FEWEST_COLUMNS_PER_PIXEL * pixels);
  if (!fine.length) return levels[0];
  return fine.reduce((coarsest, level) => (level.factor > coarsest.factor ? level : coarsest));
}

/** The columns [first, end) of a level that a window touches, none outside the recording. */
export function columnsOf(level, rateHz, startS, spanS) {
  const perSecond = rateHz / level.factor;
  const first = Math.min(Math.max(0, Math.floor(startS * perSecond)), level.columns);
  const end = Math.min(Math.max(first, Math.ceil((startS + spanS) * perSecond) + 1), level.columns);
  return [first, end];
}

/** The numbers of the chunks that hold columns [first, end), in order. */
export function chunksOf(level, first, end) {
  const chunks = [];
  if (end <= first) return chunks;
  for (let chunk = Math.floor(first / level.chunk); chunk * level.chunk < end; chunk += 1) chunks.push(chunk);
  return chunks;
}

/** A window that lies in the recording and is neither shorter than a few samples nor longer than all of it. */
export function clampWindow(startS, spanS, durationS, rateHz) {
  const shortest = Math.min(durationS, FEWEST_SAMPLES / rateHz);
  const span = Math.min(Math.max(spanS, shortest), durationS);
  const start = Math.min(Math.max(0, startS), durationS - span);
  return { startS: start, spanS: span };
}

/** The window after zooming by `factor` (below 1 is in), with the moment `anchorS` staying where it is on the screen. */
export function zoomWindow({ startS, spanS }, factor, anchorS, durationS, rateHz) {
  const { spanS: span } = clampWindow(startS, spanS * factor, durationS, rateHz);
  const share = spanS > 0 ? (anchorS - startS) / spanS : 0;
  return clampWindow(anchorS - share * span, span, durationS, rateHz);
}
