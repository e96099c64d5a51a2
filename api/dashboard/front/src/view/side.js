// Beside the plot: the channels with their types and units, and the events with their labels. Texts of the store are set
// as text, so a label of `<script>` is read and not run.

import { formatUnit } from "./numbers.js";
import { placeInWords } from "./projection.js";

/** A new element; `properties` are set on it, `children` are elements or texts. */
export function make(kind, properties = {}, ...children) {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

export class ChannelList {
  /** `on.choose(rows or null)`, `on.mark(row or undefined)`, `on.press(row)`. */
  constructor(root, on) {
    this.on = on;
    this.list = root.querySelector(".channel-list");
    this.search = root.querySelector(".channel-search");
    this.types = root.querySelector(".channel-types");
    this.count = root.querySelector(".channel-count");
    this.search.addEventListener("input", () => this.filter());
    root.querySelector(".channels-all").addEventListener("click", () => this.chooseMatching(true));
    root.querySelector(".channels-none").addEventListener("click", () => this.chooseMatching(false));
    root.querySelector(".channels-only").addEventListener("click", () => this.on.choose(this.matching().map((each) => each.row)));
    this.list.addEventListener("change", () => this.read());
    this.list.addEventListener("pointerover", (event) => this.on.mark(rowOf(event)));
    this.list.addEventListener("focusin", (event) => this.on.mark(rowOf(event)));
    for (const name of ["pointerleave", "focusout"]) this.list.addEventListener(name, () => this.on.mark(undefined));
  }

  show(group, places) {
    this.group = group;
    this.off = new Set(); // types that are filtered out of the list
    this.search.value = "";
    this.items = group.channels.map((channel) => this.item(channel, places.get(channel.row)));
    this.list.replaceChildren(...this.items.map((item) => item.element));
    const types = new Map();
    for (const { type } of group.channels) types.set(type, (types.get(type) ?? 0) + 1);
    this.types.replaceChildren(...[...types].map(([type, count]) => this.typeButton(type, count)));
    this.types.hidden = types.size < 2;
    this.filter();
  }

  item(channel, place) {
    const box = make("input", { type: "checkbox" });
    box.dataset.row = channel.row;
    const notes = [];
    if (!channel.isUsable) notes.push(channel.filled ? `not for inference: ${channel.filled} samples filled` : "not for inference");
    else if (channel.filled) notes.push(`${channel.filled} samples filled`);
    const about = make("span", { className: "channel-about" }, `${channel.type || "no type"} · ${formatUnit(channel.unit)}`);
    const name = make("span", { className: channel.isUsable ? "channel-name" : "channel-name is-unusable" }, channel.label);
    const label = make("label", {}, box, name, about);
    if (notes.length) label.append(make("span", { className: "channel-note" }, notes.join("; ")));
    label.title = [`${channel.label}: ${about.textContent}`, ...(place ? [placeInWords(place)] : [])].join("; ");
    label.dataset.row = channel.row;
    return { channel, box, element: make("li", {}, label) };
  }

  typeButton(type, count) {
    const button = make("button", { type: "button", className: "chip", "aria-pressed": "true" }, `${type || "no type"} ${count}`);
    button.addEventListener("click", () => {
      if (!this.off.delete(type)) this.off.add(type);
      button.setAttribute("aria-pressed", String(!this.off.has(type)));
      this.filter();
    });
    return button;
  }

  /** The channels that search and types leave in the list. */
  matching() {
    const asked = this.search.value.trim().toLowerCase();
    const fits = (channel) => !this.off.has(channel.type) &&
      [channel.label, channel.type, channel.unit].some((text) => text.toLowerCase().includes(asked));
    return this.group.channels.filter(fits);
  }

  filter() {
    const shown = new Set(this.matching());
    for (const { channel, element } of this.items) element.hidden = !shown.has(channel);
    this.tell();
  }

  chooseMatching(isChosen) {
    const matching = new Set(this.matching());
    const rows = this.items.filter(({ channel, box }) => (matching.has(channel) ? isChosen : box.checked));
    this.on.choose(rows.map(({ channel }) => channel.row));
  }

  read() {
    this.on.choose(this.items.filter(({ box }) => box.checked).map(({ channel }) => channel.row));
  }

  update(chosen) {
    for (const { channel, box } of this.items) box.checked = chosen.has(channel.row);
    this.chosen = chosen.size;
    this.tell();
  }

  tell() {
    const listed = this.items.filter(({ element }) => !element.hidden).length;
    const all = this.items.length;
    this.count.textContent = `${this.chosen ?? 0} of ${all} shown${listed < all ? `, ${listed} listed` : ""}`;
  }
}

function rowOf(event) {
  const row = event.target.closest?.("label")?.dataset.row;
  return row === undefined ? undefined : Number(row);
}

export class EventList {
  /** `on.change()` when labels are shown or hidden, `on.go(direction, label)`. */
  constructor(root, on) {
    this.on = on;
    this.list = root.querySelector(".event-list");
    this.note = root.querySelector(".event-note");
  }

  show(events) {
    this.list.replaceChildren(...events.kinds.map((kind) => this.item(kind)));
    const notes = [];
    if (!events.kinds.length) notes.push("The recording has no events.");
    if (events.withoutOnset) notes.push(`${events.withoutOnset} without an onset ${events.withoutOnset === 1 ? "is" : "are"} not drawn.`);
    if (events.isTruncated) notes.push("Only the first events are shown; all of them are in events.parquet.");
    this.note.textContent = notes.join(" ");
  }

  item(kind) {
    const box = make("input", { type: "checkbox", checked: kind.isShown });
    box.addEventListener("change", () => {
      kind.isShown = box.checked;
      this.on.change();
    });
    const mark = make("span", { className: `event-mark hue-${kind.colour % 7}`, "aria-hidden": "true" });
    const name = make("span", { className: "event-name" }, kind.label);
    const label = make("label", {}, box, mark, name, make("span", { className: "event-count" }, String(kind.count)));
    if (kind.description) label.title = kind.description;
    const short = kind.label.slice(0, 60);
    const go = (direction, sign, word) => {
      const button = make("button", { type: "button", className: "quiet small", "aria-label": `${word} ${short}` }, sign);
      button.addEventListener("click", () => this.on.go(direction, kind.label));
      return button;
    };
    return make("li", {}, label, go(-1, "‹", "Previous"), go(1, "›", "Next"));
  }
}
