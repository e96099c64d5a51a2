// The strip below the plot: the whole recording, how much goes on at each moment, its events, and where the window lies.

import { columnsOf, chunksOf } from "./levels.js";
import { colourOfEvent } from "./palette.js";
import { sceneOf } from "./scene.js";
import { quantile } from "./scales.js";

const MOST_CHANNELS = 48;

export class Navigator {
  /** `on.moveTo(startS)`: the window is put there. */
  constructor(canvas, on) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.on = on;
    this.activity = null;
    let held = false;
    const go = (event) => {
      const { left, width } = canvas.getBoundingClientRect();
      const atS = ((event.clientX - left) / width) * this.model.durationS;
      this.on.moveTo(atS - this.model.spanS / 2);
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      held = true;
      canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    canvas.addEventListener("pointermove", (event) => held && go(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (held = false));
  }

  /** The chunks that the strip is made of: one level that spans the recording in few of them. */
  static wants(group, pixels) {
    const enough = group.levels.filter((level) => level.columns >= pixels * 0.4);
    const level = enough[enough.length - 1] ?? group.levels[0];
    const [first, end] = columnsOf(level, group.rateHz, 0, group.durationS);
    const numbers = chunksOf(level, first, end);
    return numbers.length <= 4 ? numbers.map((number) => [group, level, number]) : [];
  }

  /** Whether the strip has been made; otherwise it is made when its chunks, or finer ones, are there. */
  prepare(group, get) {
    if (this.activity?.group === group) return true;
    const pixels = Math.max(40, Math.min(900, Math.round(this.canvas.clientWidth)));
    const whole = group.levels.filter((level) => {
      const numbers = chunksOf(level, 0, level.columns);
      return level.columns >= pixels * 0.4 && numbers.length <= 12 && numbers.every((number) => get(group, level, number));
    });
    if (!whole.length) return false;
    const level = whole[whole.length - 1];
    const numbers = chunksOf(level, 0, level.columns);
    const every = Math.ceil(group.channels.length / MOST_CHANNELS);
    const channels = group.channels.filter((channel, at) => channel.isUsable && at % every === 0);
    const rows = channels.map((channel) => channel.row);
    const { lines } = sceneOf(group, rows, { level, numbers }, 0, group.durationS, pixels, get);
    this.activity = { group, values: activityOf(lines, pixels) };
    return true;
  }

  draw(model) {
    this.model = model;
    const { canvas, context } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = model.colours.surface;
    context.fillRect(0, 0, width, height);
    if (this.activity?.group === model.group) this.drawActivity(width, height);
    this.drawEvents(width, height);
    const x = (model.startS / model.durationS) * width;
    const span = Math.max(3, (model.spanS / model.durationS) * width);
    context.fillStyle = model.colours.page;
    context.globalAlpha = 0.6;
    context.fillRect(0, 0, x, height);
    context.fillRect(x + span, 0, width - x - span, height);
    context.globalAlpha = 1;
    context.strokeStyle = model.colours.accent;
    context.lineWidth = 2;
    context.strokeRect(x + 1, 1, Math.max(1, span - 2), height - 2);
  }

  drawActivity(width, height) {
    const { context, model } = this;
    const { values } = this.activity;
    const known = values.filter((value) => value > 0);
    if (!known.length) return;
    // calm stretches are low and lively ones high, whatever lies between them
    const [least, most] = [quantile(known, 0.02) * 0.7, quantile(known, 0.98)];
    context.fillStyle = model.colours.unusable;
    values.forEach((value, at) => {
      const tall = Math.min(1, (value - least) / (most - least || 1)) * (height - 10);
      const x = (at / values.length) * width;
      if (tall > 0) context.fillRect(x, height - 1 - tall, width / values.length + 0.5, tall);
    });
  }

  drawEvents(width, height) {
    const { context, model } = this;
    const shown = model.events.within(0, model.durationS);
    context.globalAlpha = shown.length > width / 3 ? 0.35 : 0.9;
    for (const event of shown) {
      context.fillStyle = colourOfEvent(model.colours, event.colour);
      context.fillRect((event.onsetS / model.durationS) * width, 0, 1, Math.min(6, height));
    }
    context.globalAlpha = 1;
  }
}

/** For each column the typical height of a channel, as a share of that channel's own typical height. */
function activityOf(lines, pixels) {
  const shares = [];
  for (const { lo, hi } of lines.values()) {
    const heights = Float32Array.from(lo, (low, at) => hi[at] - low);
    const known = heights.filter((value) => value === value);
    const typical = known.length ? quantile(known, 0.5) : 0;
    if (typical > 0) shares.push(heights.map((value) => value / typical));
  }
  return Array.from({ length: pixels }, (_, at) => {
    const column = shares.map((heights) => heights[at]).filter((value) => value === value);
    return column.length ? quantile(column, 0.6) : 0;
  });
}
