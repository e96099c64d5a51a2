// What charts share.
export const SERIES = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `var(--series-${n})`);
export const SHAPES = ["circle", "square", "triangle", "diamond", "plus", "times", "star", "wye"];

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

// as api/dashboard/showing.py says it
export function bytes(value) {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${Number(value.toPrecision(3)).toLocaleString("en")} ${UNITS[unit]}`;
}

// Every chart has these; `label` is what a screen reader says of it.
export function frame(width, label, height = Math.max(220, Math.min(340, width * 0.56))) {
  return { width, height, marginLeft: 56, marginBottom: 38, ariaLabel: label, style: {} };
}
