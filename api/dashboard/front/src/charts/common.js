// What charts share.
export const SERIES = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `var(--series-${n})`);
export const SHAPES = ["circle", "plus", "square2", "triangle2", "times", "diamond2", "asterisk"];
// the same, drawn small for legends
const SHAPE_PATHS = [
  "M4,0A4,4,0,1,1,-4,0A4,4,0,1,1,4,0",
  "M-4.5,0H4.5M0,-4.5V4.5",
  "M-3.5,-3.5H3.5V3.5H-3.5Z",
  "M0,-4.5L4.2,3.2H-4.2Z",
  "M-3.5,-3.5L3.5,3.5M-3.5,3.5L3.5,-3.5",
  "M0,-5L3.5,0L0,5L-3.5,0Z",
  "M0,-4.5V4.5M-4,-2.3L4,2.3M4,-2.3L-4,2.3",
];

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

// as api/dashboard/showing.py says it
export function bytes(value) {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${Number(value.toPrecision(3)).toLocaleString("en")} ${UNITS[unit]}`;
}

// Every chart has these; `label` is what a screen reader says of it.
export function frame(width, label, height = Math.max(220, Math.min(340, width * 0.56))) {
  return { width, height, marginLeft: 58, marginBottom: 38, ariaLabel: label };
}

export function formats(points) {
  return [...new Set(points.map((one) => one.format))].sort();
}

export function whole(value) {
  return Number.isInteger(value) ? value.toLocaleString("en") : "";
}

export function seconds(value) {
  if (value < 1) return `${Number((value * 1000).toPrecision(2))} ms`;
  if (value < 60) return `${Number(value.toPrecision(2))} s`;
  if (value < 3600) return `${Number((value / 60).toPrecision(2))} min`;
  return `${Number((value / 3600).toPrecision(2))} h`;
}

// A chart with what its marks mean, as words beside a mark; Plot's own legends are styled in a way that our policy forbids.
export function withLegend(chart, names, colours, { shapes = false } = {}) {
  const list = document.createElement("p");
  list.className = "legend";
  names.forEach((name, nth) => {
    const mark = svg("svg", { width: 12, height: 12, viewBox: "-6 -6 12 12" });
    const colour = colours[nth % colours.length];
    const drawn = shapes
      ? { d: SHAPE_PATHS[nth % SHAPE_PATHS.length], fill: "none", stroke: colour, "stroke-width": 1.6 }
      : { d: "M-5,-5H5V5H-5Z", fill: colour };
    mark.append(svg("path", drawn));
    const item = document.createElement("span");
    item.append(mark, name);
    list.append(item);
  });
  const both = document.createDocumentFragment();
  both.append(chart, list);
  return both;
}

function svg(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// as api/dashboard/addresses.py says it
export function recordingPage({ dataset, path }) {
  return `/dashboard/datasets/${dataset}/recordings/${path.split("/").map(encodeURIComponent).join("/")}`;
}

// The unit in which so many seconds are shown.
export function spell(seconds) {
  if (seconds < 300) return { scale: 1, unit: "s" };
  if (seconds < 3 * 3600) return { scale: 60, unit: "min" };
  return seconds < 4 * 86400 ? { scale: 3600, unit: "h" } : { scale: 86400, unit: "d" };
}
