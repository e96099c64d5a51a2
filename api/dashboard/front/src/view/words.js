// The window in words, and its values as CSV.

import { digitsFor, formatTime, formatUnit } from "./numbers.js";

const MOST_NAMED = 12;

/** Sentences that say what the plot shows, for whoever does not see it. */
export function describeWindow({ group, startS, spanS, clock, page, chosen, events, level, durationS }) {
  const digits = Math.max(1, digitsFor(spanS / 200));
  const time = (timeS) => formatTime(timeS, { clock, digits });
  const step = level.factor === 1 ? "every sample" : `least and greatest of every ${level.factor} samples`;
  const sentences = [
    `${time(startS)} to ${time(startS + spanS)} of ${time(durationS)}, ${step}, at ${group.rateHz} samples a second.`,
    `${page.length} of ${chosen.length} chosen channels of ${group.channels.length} in ${group.name}: ${named(page)}.`,
  ];
  const unusable = page.filter((channel) => !channel.isUsable);
  if (unusable.length) sentences.push(`Not for inference: ${named(unusable)}.`);
  const found = events.within(startS, spanS);
  if (!events.kinds.length) sentences.push("The recording has no events.");
  else if (!found.length) sentences.push("No events in this window.");
  else {
    const few = found.slice(0, MOST_NAMED).map((event) => `${event.label} at ${time(event.onsetS)}`);
    const more = found.length > MOST_NAMED ? `, and ${found.length - MOST_NAMED} more` : "";
    sentences.push(`${found.length} ${found.length === 1 ? "event" : "events"}: ${few.join(", ")}${more}.`);
  }
  return sentences;
}

function named(channels) {
  const few = channels.slice(0, MOST_NAMED).map((channel) => channel.label);
  return channels.length > MOST_NAMED ? `${few.join(", ")} and ${channels.length - MOST_NAMED} more` : few.join(", ");
}

/**
 * The values of the window as CSV, in physical units: a line for each sample, or for each column of an envelope.
 *
 * `columns` are {channel, lo, hi} with the stored values; `hi` is null where the signal itself is given.
 */
export function valuesAsCsv({ columns, firstColumn, factor, rateHz }) {
  const heads = ["time_s"];
  for (const { channel, hi } of columns) {
    const name = `${channel.label} [${formatUnit(channel.unit)}]`;
    heads.push(...(hi ? [`${name} least`, `${name} greatest`] : [name]));
  }
  const lines = [heads.map(cell).join(",")];
  const count = columns[0]?.lo.length ?? 0;
  const digits = Math.max(3, digitsFor(factor / rateHz) + 2);
  for (let at = 0; at < count; at += 1) {
    const values = [(((firstColumn + at) * factor) / rateHz).toFixed(digits)];
    for (const { channel, lo, hi } of columns) {
      const ends = [lo[at], ...(hi ? [hi[at]] : [])].map((value) => value * channel.scale + channel.offset);
      values.push(...ends.sort((a, b) => a - b).map((value) => String(Number(value.toPrecision(9)))));
    }
    lines.push(values.join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

/** A text as a cell. One that a spreadsheet would take for a formula gets an apostrophe in front. */
export function cell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
