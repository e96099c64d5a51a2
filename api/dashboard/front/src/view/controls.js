// Everything above and below the plot that can be pressed or read: the toolbar, the status line, the words, help.

import { formatQuantity, formatTime, hasUnit } from "./numbers.js";
import { make } from "./side.js";

const SPANS_S = [0.5, 1, 2, 5, 10, 20, 30, 60, 300, 600, 1800, 3600];
const DENSITIES = [1, 2, 4, 8, 16, 32, 64, 128];
const NOTICE_MS = 6000;

export class Controls {
  constructor(element, viewer) {
    this.element = element;
    this.viewer = viewer;
    this.find = (selector) => element.querySelector(selector);
    this.status = this.find(".view-status");
    this.noticed = this.find(".view-notice");
    this.dialog = this.find("dialog");
    for (const [name, work] of Object.entries(this.buttons())) {
      this.find(`[data-do="${name}"]`).addEventListener("click", work);
    }
    this.find(".group-choice").addEventListener("change", (event) => viewer.switchGroup(event.target.value));
    this.find(".span-choice").addEventListener("change", (event) => this.spanChosen(event.target.value));
    this.find(".density-choice").addEventListener("change", (event) => viewer.set({ perPage: Number(event.target.value), top: 0 }));
    this.find(".scale-type").addEventListener("change", () => this.update());
    this.find(".from").addEventListener("change", (event) => this.fromGiven(event.target));
    this.find(".with-centre").addEventListener("change", (event) => viewer.set({ keepsOffset: !event.target.checked }));
    this.find(".with-events").addEventListener("change", (event) => viewer.set({ hidesEvents: !event.target.checked }));
    this.find(".with-clock").addEventListener("change", (event) => viewer.set({ clock: event.target.checked }));
    this.find(".channel-scroll").addEventListener("input", (event) => viewer.set({ top: Number(event.target.value) }));
  }

  buttons() {
    const { viewer } = this;
    const means = viewer.meanings();
    return {
      start: () => means.toStart(),
      back: () => means.pan(-1),
      forth: () => means.pan(1),
      end: () => means.toEnd(),
      in: () => means.zoom(1 / 1.6),
      out: () => means.zoom(1.6),
      all: () => means.all(),
      larger: () => means.amplify(-1),
      smaller: () => means.amplify(1),
      auto: () => means.auto(),
      "previous-event": () => means.event(-1),
      "next-event": () => means.event(1),
      help: () => this.help(),
      "close-help": () => this.dialog.close(),
      csv: () => this.download(),
      link: () => this.copyLink(),
    };
  }

  get scaleType() {
    return this.find(".scale-type").value;
  }

  /** Fill in what depends on the store. */
  show(store, group, events) {
    const option = (value, text) => make("option", { value }, text);
    this.find(".group-choice").replaceChildren(...store.groups.map((each) =>
      option(each.name, `${each.name} (${each.channels.length} at ${each.rateHz} Hz)`)));
    this.find(".group-choice").value = group.name;
    this.find(".group-part").hidden = store.groups.length < 2;
    this.spans = SPANS_S.filter((span) => span < group.durationS && span * group.rateHz >= 8);
    this.find(".span-choice").replaceChildren(...this.spans.map((span) =>
      option(String(span), span < 60 ? `${span} s` : span < 3600 ? `${span / 60} min` : `${span / 3600} h`)), option("all", "all of it"));
    const types = [...new Set(group.channels.map((channel) => channel.type))];
    this.find(".scale-type").replaceChildren(option("", "all types"), ...types.map((type) => option(type, type || "no type")));
    this.find(".scale-type").hidden = types.length < 2;
    const hasEvents = events.all.length > 0;
    for (const name of ["previous-event", "next-event"]) this.find(`[data-do="${name}"]`).disabled = !hasEvents;
    this.find(".view-facts").textContent = facts(store, group, events);
    for (const each of this.element.querySelectorAll("[data-do], select, input")) {
      if (!each.matches('[data-do$="-event"]')) each.disabled = false;
    }
    this.element.classList.remove("is-empty");
  }

  /** Numbers of rows that a page may have, of so many channels; the last is all of them. */
  densities(count) {
    return [...DENSITIES.filter((each) => each < count), Math.max(1, count)];
  }

  update() {
    const { viewer } = this;
    const { startS, spanS, keepsOffset, hidesEvents, clock, top } = viewer.state;
    const { perPage } = viewer;
    const choice = this.find(".span-choice");
    const isAll = spanS >= viewer.group.durationS;
    const known = this.spans.find((span) => Math.abs(span - spanS) < 1e-6);
    choice.querySelector(".other")?.remove();
    if (!isAll && known === undefined) {
      choice.prepend(make("option", { value: "other", className: "other" }, `${Number(spanS.toPrecision(3))} s`));
    }
    choice.value = isAll ? "all" : known === undefined ? "other" : String(known);
    const from = this.find(".from");
    if (document.activeElement !== from) from.value = formatTime(startS, { clock, digits: spanS < 20 ? 3 : 1 }).replace(" s", "");
    const count = viewer.chosen.length;
    this.find(".density-choice").replaceChildren(...this.densities(count).map((each) =>
      make("option", { value: each === count ? "0" : String(each) }, each === count ? `all ${count}` : String(each))));
    this.find(".density-choice").value = perPage < count ? this.densityShown(perPage) : "0";
    this.find(".with-centre").checked = !keepsOffset;
    this.find(".with-events").checked = !hidesEvents;
    this.find(".with-clock").checked = Boolean(clock);
    const scroll = this.find(".channel-scroll");
    const most = count - viewer.perPage;
    scroll.hidden = most <= 0;
    scroll.max = String(Math.max(0, most));
    scroll.value = String(top);
  }

  densityShown(perPage) {
    const choice = this.find(".density-choice");
    if (![...choice.options].some((option) => option.value === String(perPage))) {
      choice.prepend(make("option", { value: String(perPage) }, String(perPage)));
    }
    return String(perPage);
  }

  /** After a frame: what it is made of, and the scale. */
  drawn({ level, isWhole }, isLoading) {
    const made = level.factor === 1 ? "every sample" : `each column ${level.factor} samples (view level ${level.number})`;
    this.say(isLoading || !isWhole ? `${made}, reading…` : made);
    this.element.dataset.state = isLoading || !isWhole ? "reading" : "whole";
    this.find('[data-do="csv"]').disabled = isLoading || !isWhole;
    const channel = this.viewer.page.find((each) => !this.scaleType || each.type === this.scaleType) ?? this.viewer.page[0];
    this.find(".scale-shown").textContent = channel
      ? `${hasUnit(channel.unit) ? formatQuantity(this.viewer.scaleOf(channel), channel.unit) : this.viewer.scaleOf(channel)} a row` : "";
  }

  say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  /** Something went wrong: say it until it is over; `retry` is what its button does, null for no button. */
  trouble(text, retry) {
    this.element.dataset.state = "trouble";
    clearTimeout(this.noticing);
    this.noticed.replaceChildren(text);
    this.noticed.className = "view-notice notice warn";
    if (retry) {
      const button = make("button", { type: "button", className: "quiet small" }, "Try again");
      button.addEventListener("click", retry);
      this.noticed.append(" ", button);
    }
    this.isTroubled = true;
    this.say("");
  }

  /** Something that is worth knowing for a moment. */
  notice(text) {
    clearTimeout(this.noticing);
    this.isTroubled = false;
    this.noticed.textContent = text;
    this.noticed.className = "view-notice notice";
    this.noticing = setTimeout(() => this.noticed.replaceChildren(), NOTICE_MS);
  }

  /** Reading works again. */
  calm() {
    if (!this.isTroubled) return;
    this.isTroubled = false;
    this.noticed.replaceChildren();
    this.noticed.className = "view-notice";
  }

  describe(sentences) {
    this.find(".words").replaceChildren(...sentences.map((sentence) => make("p", {}, sentence)));
    this.find(".words-short").textContent = sentences[0];
  }

  spanChosen(value) {
    const { viewer } = this;
    if (value === "all") viewer.show(0, viewer.group.durationS);
    else if (value !== "other") viewer.zoomAt(Number(value) / viewer.state.spanS, viewer.state.startS + viewer.state.spanS / 2);
  }

  fromGiven(field) {
    const timeS = parseTime(field.value);
    field.setAttribute("aria-invalid", String(timeS === undefined));
    if (timeS !== undefined) this.viewer.moveTo(timeS);
  }

  help() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  download() {
    const text = this.viewer.csv();
    if (text === null) return;
    const { groupName, startS, spanS } = this.viewer.state;
    const link = make("a", {
      href: URL.createObjectURL(new Blob([text], { type: "text/csv" })),
      download: `${this.element.dataset.name}_${groupName}_${startS.toFixed(3)}-${(startS + spanS).toFixed(3)}s.csv`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  async copyLink() {
    this.viewer.settled();
    try {
      await navigator.clipboard.writeText(location.href);
      this.notice("The address of this view is copied.");
    } catch {
      this.notice("The address bar holds the address of this view.");
    }
  }
}

/** Seconds of `12.5`, `1:02.5` or `1:02:03`; undefined when it is no time. */
export function parseTime(text) {
  const parts = text.trim().replace(/\s*s$/, "").replace(",", ".").split(":");
  if (parts.length > 3 || !parts.every((part) => /^\d+(\.\d*)?$/.test(part))) return undefined;
  return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}

function facts(store, group, events) {
  const said = [
    formatTime(group.durationS, { clock: true }),
    `${group.channels.length} channels`,
    group.sourceRateHz && group.sourceRateHz !== group.rateHz ? `${group.rateHz} Hz of ${group.sourceRateHz} Hz` : `${group.rateHz} Hz`,
    `${events.all.length} ${events.all.length === 1 ? "event" : "events"}`,
  ];
  if (store.root.power_line_frequency) said.push(`mains ${store.root.power_line_frequency} Hz`);
  if (store.root.nemar?.derived) said.push("corrected by signal-space separation");
  return said.join(" · ");
}
