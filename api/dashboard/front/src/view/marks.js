// The text around the signal: times, events, names, values, scale bars. Each takes the plot and the context of its canvas.

import { digitsFor, formatQuantity, formatTime, formatUnit, hasUnit, niceAtLeast, tickStep, ticksIn } from "./numbers.js";
import { colourOfEvent, colourOfType } from "./palette.js";

const TALL = 84; // CSS pixels of a row that has an axis of its own

export function drawTicks(plot, context) {
  const { area, model } = plot;
  const step = tickStep(model.spanS, area.width / (model.clock ? 96 : 84));
  const digits = digitsFor(step);
  context.textAlign = "center";
  for (const tick of ticksIn(model.startS, model.spanS, step)) {
    const x = Math.round(plot.xOf(tick)) + 0.5;
    context.strokeStyle = model.colours.grid;
    context.beginPath();
    context.moveTo(x, area.top);
    context.lineTo(x, area.bottom + 4);
    context.stroke();
    const text = formatTime(tick, { clock: model.clock, digits });
    const half = context.measureText(text).width / 2;
    if (x - half < 2 || x + half > plot.width - 2) continue;
    context.fillStyle = model.colours.muted;
    context.fillText(text, x, area.bottom + 13);
  }
}

export function drawEvents(plot, context) {
  const { area, model } = plot;
  const shown = model.events.within(model.startS, model.spanS);
  const isCrowded = shown.length > area.width / 4;
  let free = -Infinity;
  context.textAlign = "left";
  shown.forEach((event, number) => {
    const colour = colourOfEvent(model.colours, event.colour);
    const x = plot.xOf(event.onsetS);
    const end = plot.xOf(event.onsetS + event.durationS);
    if (end - x >= 1 && !isCrowded) {
      context.globalAlpha = 0.13;
      context.fillStyle = colour;
      const left = Math.max(area.left, x);
      context.fillRect(left, area.top, Math.max(0, Math.min(area.right, end) - left), area.height);
    }
    context.globalAlpha = isCrowded ? 0.35 : 0.8;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    if (x >= area.left - 0.5) {
      const place = Math.round(x) + 0.5;
      context.beginPath();
      context.moveTo(place, isCrowded ? 4 : 2);
      context.lineTo(place, isCrowded ? area.top : area.bottom);
      context.stroke();
    }
    context.globalAlpha = 1;
    if (isCrowded || x < free || x > area.right - 12) return;
    const next = shown[number + 1];
    const room = Math.min(area.right, next ? plot.xOf(next.onsetS) : Infinity) - Math.max(x, area.left) - 8;
    const text = shortened(context, event.label, room);
    if (!text) return;
    const left = Math.max(x, area.left) + 4;
    context.fillStyle = model.colours.ink;
    context.fillText(text, left, 11);
    free = left + context.measureText(text).width + 4;
  });
}

export function drawLabels(plot, context) {
  const { area, model } = plot;
  const every = Math.max(1, Math.ceil(13 / plot.rowHeight));
  const isTall = plot.rowHeight >= TALL && plot.width >= 640;
  const room = area.left - (isTall ? 46 : 12);
  context.textAlign = "right";
  context.font = `${plot.rowHeight < 15 ? 11 : 12}px ${model.colours.font}`;
  const pointed = plot.pointer ? plot.channelAt(plot.pointer.y) : undefined;
  model.page.forEach((channel, index) => {
    const isMarked = channel.row === model.marked || channel === pointed;
    if (index % every && !isMarked) return;
    const y = plot.rowMiddle(index);
    const text = shortened(context, channel.label, room) || "…";
    const width = context.measureText(text).width;
    const end = isTall ? 6 + width : area.left - 8;
    if (isMarked) {
      context.fillStyle = model.colours.page;
      context.fillRect(end - width - 4, y - 8, width + 8, 16);
    }
    context.fillStyle = isMarked ? model.colours.accent : channel.isUsable ? model.colours.ink : model.colours.muted;
    context.fillText(text, end, y);
    if (!channel.isUsable) context.fillRect(end - width, y, width, 1); // struck through: not for inference
    if (isTall) drawUnits(plot, context, channel, index);
  });
  context.font = `12px ${model.colours.font}`;
}

/** Physical values beside a row that is high enough for them. */
function drawUnits(plot, context, channel, index) {
  const { area, model } = plot;
  const scale = model.scaleOf(channel);
  const step = niceAtLeast(scale / (plot.rowHeight / 34));
  const centre = plot.centres.get(channel.row) ?? 0;
  const top = plot.rowMiddle(index);
  context.save();
  context.font = `10px ${model.colours.font}`;
  context.fillStyle = model.colours.muted;
  for (const value of ticksIn(centre - scale * 0.46, scale * 0.92, step)) {
    const y = top - ((value - centre) / scale) * plot.rowHeight;
    context.fillRect(area.left - 4, Math.round(y), 4, 1);
    context.fillText(hasUnit(channel.unit) ? formatQuantity(value, channel.unit) : String(Number(value.toPrecision(6))), area.left - 6, y);
  }
  context.restore();
}

/** A bar for each type on the page, and its length in physical units. */
export function drawScaleBars(plot, context) {
  const { area, model } = plot;
  const types = [...new Map(model.page.map((channel) => [channel.type, channel])).values()].slice(0, 5);
  const narrow = plot.width < 640;
  let y = area.top + 8;
  for (const channel of types) {
    const perPixel = model.scaleOf(channel) / plot.rowHeight;
    const value = niceAtLeast(perPixel * 22);
    const length = value / perPixel;
    const text = hasUnit(channel.unit) ? formatQuantity(value, channel.unit) : `${niceAtLeast(value)}`;
    const x = narrow ? area.right - 6 : area.right + 9;
    context.strokeStyle = colourOfType(model.colours, channel);
    context.fillStyle = model.colours.ink;
    context.lineWidth = 2;
    context.beginPath();
    for (const end of [y, y + length]) {
      context.moveTo(x - 3, end);
      context.lineTo(x + 3, end);
    }
    context.moveTo(x, y);
    context.lineTo(x, y + length);
    context.stroke();
    context.textAlign = narrow ? "right" : "left";
    const place = narrow ? x - 6 : x + 7;
    if (narrow) {
      context.fillStyle = model.colours.page;
      const width = Math.max(context.measureText(text).width, context.measureText(channel.type).width);
      context.globalAlpha = 0.8;
      context.fillRect(place - width - 2, y + length / 2 - 15, width + 4, 30);
      context.globalAlpha = 1;
      context.fillStyle = model.colours.ink;
    }
    const middle = y + Math.max(length, 28) / 2;
    context.fillText(shortened(context, text, narrow ? 90 : 58), place, middle - 7);
    context.fillStyle = model.colours.muted;
    const kind = hasUnit(channel.unit) ? channel.type : `${channel.type}, ${formatUnit(channel.unit)}`;
    context.fillText(shortened(context, kind, narrow ? 90 : 58), place, middle + 7);
    y += Math.max(length, 32) + 14;
    if (y > area.bottom - 40) break;
  }
}

function shortened(context, text, room) {
  const plain = text.length > 80 ? `${text.slice(0, 79)}…` : text;
  if (context.measureText(plain).width <= room) return plain;
  for (let length = plain.length - 1; length > 0; length -= 1) {
    const shorter = `${plain.slice(0, length)}…`;
    if (context.measureText(shorter).width <= room) return shorter;
  }
  return "";
}
