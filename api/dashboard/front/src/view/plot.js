// The plot: three canvases on top of each other. Behind: grid and events. Middle: the signal, pixel by pixel. In front:
// labels, scale bars, what the pointer is on. Text on a canvas is only ever text, whatever a label holds.

import { drawEvents, drawLabels, drawScaleBars, drawTicks } from "./marks.js";
import { digitsFor, formatQuantity, formatTime } from "./numbers.js";
import { pixelColour, Raster } from "./raster.js";
import { planWindow, samplesOf, sceneOf } from "./scene.js";
import { colourOfType } from "./palette.js";

const LANE = 20;
const AXIS = 22;

export class Plot {
  constructor(element) {
    this.element = element;
    [this.back, this.middle, this.front] = ["back", "middle", "front"].map((name) => {
      const canvas = element.querySelector(`canvas.${name}`);
      return { canvas, context: canvas.getContext("2d") };
    });
    this.frames = []; // milliseconds of the last frames, for whoever wants to measure
    this.drawn = null;
    this.pointer = null;
    this.resize();
  }

  /** Fit the canvases to the element and the screen; whether anything changed. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const ratio = window.devicePixelRatio || 1;
    if (width === this.width && height === this.height && ratio === this.ratio) return false;
    Object.assign(this, { width, height, ratio });
    const narrow = width < 640;
    this.area = { left: narrow ? 54 : 86, top: LANE, right: width - (narrow ? 14 : 74), bottom: height - AXIS };
    this.area.width = Math.max(40, this.area.right - this.area.left);
    this.area.height = Math.max(40, this.area.bottom - this.area.top);
    for (const { canvas } of [this.back, this.front]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.pixels = Math.round(this.area.width * ratio);
    this.rowsOfPixels = Math.round(this.area.height * ratio);
    this.middle.canvas.width = this.pixels;
    this.middle.canvas.height = this.rowsOfPixels;
    Object.assign(this.middle.canvas.style, {
      left: `${this.area.left}px`,
      top: `${this.area.top}px`,
      width: `${this.area.width}px`,
      height: `${this.area.height}px`,
    });
    this.raster = new Raster(this.pixels, this.rowsOfPixels);
    return true;
  }

  /** What the window needs to be read. */
  plan(model) {
    return planWindow(model.group, model.startS, model.spanS, this.area.width);
  }

  /** Where a row of the page stands, in CSS pixels from the top of the element. */
  rowMiddle(index) {
    return this.area.top + (index + 0.5) * this.rowHeight;
  }

  /** The moment under a place, in seconds. */
  timeAt(x) {
    const { startS, spanS } = this.model;
    return startS + ((x - this.area.left) / this.area.width) * spanS;
  }

  xOf(timeS) {
    const { startS, spanS } = this.model;
    return this.area.left + ((timeS - startS) / spanS) * this.area.width;
  }

  /** The channel of the page at a height, or undefined. */
  channelAt(y) {
    if (!this.model || y < this.area.top || y > this.area.bottom) return undefined;
    return this.model.page[Math.floor((y - this.area.top) / this.rowHeight)];
  }

  /** Draw a model: group, window, the channels of the page, scales, events, colours. */
  draw(model) {
    const began = performance.now();
    this.model = model;
    this.rowHeight = this.area.height / Math.max(1, model.page.length);
    const plan = this.plan(model);
    const rows = model.page.map((channel) => channel.row);
    // what only changes colours or heights need not look at the samples again
    const key = [model.group.name, model.version, model.startS, model.spanS, this.pixels, rows].join();
    if (key !== this.key || !this.drawn.isWhole) {
      this.drawn = sceneOf(model.group, rows, plan, model.startS, model.spanS, this.pixels, model.get);
      this.key = key;
    }
    this.drawn = { ...this.drawn, plan, model };
    this.drawBack();
    this.drawSignal();
    this.drawFront();
    this.frames.push(performance.now() - began);
    if (this.frames.length > 240) this.frames.shift();
  }

  drawSignal() {
    const { model, lines, hasLines } = this.drawn;
    const { raster, ratio } = this;
    raster.clear();
    this.centres = new Map();
    const top = new Float32Array(this.pixels);
    const bottom = new Float32Array(this.pixels);
    const height = this.rowHeight * ratio;
    const crowded = this.rowHeight < 9 && !hasLines;
    model.page.forEach((channel, index) => {
      const { lo, hi } = lines.get(channel.row);
      const centre = model.keepsOffset ? 0 : centreOf(lo, hi) * channel.scale + channel.offset;
      this.centres.set(channel.row, centre);
      const gain = height / model.scaleOf(channel);
      const zero = (index + 0.5) * height - (channel.offset - centre) * gain;
      const slope = -channel.scale * gain;
      const [upper, lower] = channel.scale < 0 ? [lo, hi] : [hi, lo];
      let tall = 0;
      for (let x = 0; x < upper.length; x += 1) {
        top[x] = zero + upper[x] * slope;
        bottom[x] = zero + lower[x] * slope;
        if (bottom[x] - top[x] > 4 * ratio) tall += 1;
      }
      const isMarked = model.marked === channel.row;
      const colour = pixelColour(isMarked ? model.colours.accent : colourOfType(model.colours, channel));
      const alpha = isMarked || model.marked === undefined ? 1 : 0.4;
      // a band is lighter inside, so that bands that overlap are still told apart
      const isBand = !hasLines && tall > upper.length / 3;
      const thickness = (isMarked ? 1.8 : crowded ? 0.9 : 1.15) * ratio;
      raster.spans(top, bottom, colour, { thickness, alpha: isBand ? alpha * 0.85 : alpha, inner: isBand ? alpha * 0.5 : alpha });
    });
    this.middle.context.putImageData(raster.image, 0, 0);
  }

  begin({ context }) {
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = `12px ${this.model.colours.font}`;
    context.textBaseline = "middle";
    return context;
  }

  drawBack() {
    const context = this.begin(this.back);
    const { area, model } = this;
    const { colours } = model;
    context.fillStyle = colours.surface;
    context.fillRect(area.left, area.top, area.width, area.height);
    if (this.rowHeight >= 14) {
      context.fillStyle = colours.stripe;
      for (let index = 1; index < model.page.length; index += 2) {
        context.fillRect(area.left, area.top + index * this.rowHeight, area.width, this.rowHeight);
      }
    }
    drawTicks(this, context);
    drawEvents(this, context);
    if (this.rowHeight >= 26) {
      context.strokeStyle = colours.zero;
      context.lineWidth = 1;
      context.setLineDash([2, 4]);
      context.beginPath();
      model.page.forEach((_, index) => {
        const y = Math.round(this.rowMiddle(index)) + 0.5;
        context.moveTo(area.left, y);
        context.lineTo(area.right, y);
      });
      context.stroke();
      context.setLineDash([]);
    }
    context.strokeStyle = colours.edge;
    context.strokeRect(area.left - 0.5, area.top - 0.5, area.width + 1, area.height + 1);
  }

  drawFront() {
    if (!this.drawn) return;
    const context = this.begin(this.front);
    drawLabels(this, context);
    drawScaleBars(this, context);
    this.drawPointer(context);
  }

  drawPointer(context) {
    const { area, model, pointer } = this;
    if (pointer?.fromX !== undefined) { // a span that is being marked
      const [a, b] = [pointer.fromX, pointer.x].sort((one, other) => one - other);
      context.fillStyle = model.colours.accent;
      context.globalAlpha = 0.18;
      context.fillRect(a, area.top, b - a, area.height);
      context.globalAlpha = 1;
      return;
    }
    if (!pointer || pointer.x < area.left || pointer.x > area.right) return;
    context.strokeStyle = model.colours.accent;
    context.lineWidth = 1;
    context.globalAlpha = 0.7;
    context.beginPath();
    context.moveTo(Math.round(pointer.x) + 0.5, area.top);
    context.lineTo(Math.round(pointer.x) + 0.5, area.bottom);
    context.stroke();
    context.globalAlpha = 1;
    const text = this.readingAt(pointer);
    if (!text) return;
    const width = context.measureText(text).width + 12;
    const x = Math.min(Math.max(area.left, pointer.x + 10), area.right - width);
    const y = Math.max(area.top + 2, pointer.y - 28);
    context.fillStyle = model.colours.tip;
    context.fillRect(x, y, width, 20);
    context.fillStyle = model.colours.tipInk;
    context.textAlign = "left";
    context.fillText(text, x + 6, y + 10);
  }

  /** The moment and the value under the pointer, in words. */
  readingAt({ x, y }) {
    const { area, drawn, model } = this;
    const channel = this.channelAt(y);
    if (!channel || !drawn) return "";
    const pixel = Math.min(this.pixels - 1, Math.max(0, Math.floor(((x - area.left) / area.width) * this.pixels)));
    const { lo, hi } = drawn.lines.get(channel.row);
    const secondsPerPixel = model.spanS / area.width;
    const when = formatTime(this.timeAt(x), { clock: model.clock, digits: digitsFor(secondsPerPixel) });
    if (Number.isNaN(lo[pixel])) return `${when}  ${channel.label}: not read yet`;
    const physical = (digital) => digital * channel.scale + channel.offset;
    const [a, b] = [physical(lo[pixel]), physical(hi[pixel])].sort((one, other) => one - other);
    const said = a === b || drawn.hasLines ? formatQuantity((a + b) / 2, channel.unit)
      : `${formatQuantity(a, channel.unit)} … ${formatQuantity(b, channel.unit)}`;
    return `${when}  ${channel.label.slice(0, 40)}: ${said}`;
  }

  /**
   * What is drawn of a channel, in its physical unit: for tests, and for whoever looks in the browser's console.
   *
   * `lo` and `hi` have a value for each device pixel; `samples` are those of the window when the signal itself is drawn.
   */
  reading(row) {
    const { lines, plan, model, isWhole } = this.drawn;
    const channel = model.page.find((each) => each.row === row);
    const physical = (values) => Array.from(values, (value) => value * channel.scale + channel.offset);
    const samples = samplesOf(model.group, row, plan, model.get);
    return {
      group: model.group.name,
      level: plan.level.number,
      factor: plan.level.factor,
      startS: model.startS,
      spanS: model.spanS,
      isWhole,
      lo: physical(lines.get(row).lo),
      hi: physical(lines.get(row).hi),
      samples: samples && { first: samples.first, values: physical(samples.values) },
    };
  }
}

/** The middle of what is drawn of a channel, which it is shifted by, so that a constant offset does not carry it away. */
function centreOf(lo, hi) {
  let sum = 0;
  let count = 0;
  for (let x = 0; x < lo.length; x += 1) {
    const middle = lo[x] + hi[x];
    if (middle === middle) { // not NaN
      sum += middle;
      count += 1;
    }
  }
  return count ? sum / count / 2 : 0;
}
