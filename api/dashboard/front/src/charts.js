// Draws the charts of a page: every <figure data-chart="KIND"> with the JSON of the script that data-from names.
// A kind is a module in charts/ that gives a node for (data, {width}); colours are CSS variables, so both themes need no redrawing.
import { coverage } from "./charts/coverage.js";
import { failures } from "./charts/failures.js";
import { lanes } from "./charts/lanes.js";
import { memory } from "./charts/memory.js";
import { pace } from "./charts/pace.js";
import { seconds } from "./charts/seconds.js";

const KINDS = { coverage, failures, lanes, memory, pace, seconds };

function draw(figure) {
  const place = figure.querySelector(".drawing");
  const width = Math.floor(place.clientWidth);
  // narrower than its own margins there is nothing to draw; the watcher comes again when there is room
  if (width < 160 || figure.dataset.width === String(width)) return;
  figure.dataset.width = String(width);
  const data = JSON.parse(document.getElementById(figure.dataset.from).textContent);
  const made = KINDS[figure.dataset.chart](data, { width });
  // Plot brings its style sheet inside the SVG, which the policy of our pages forbids; dashboard.css says the same
  for (const style of made.querySelectorAll("style")) style.remove();
  // a thousand marks are no places to stop for a keyboard: the table beside them has links to those that matter
  for (const link of made.querySelectorAll("a")) link.setAttribute("tabindex", "-1");
  place.replaceChildren(made);
}

const watcher = new ResizeObserver((entries) => entries.forEach((entry) => draw(entry.target.closest("figure"))));
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  draw(figure);
  watcher.observe(figure.querySelector(".drawing"));
}
