// The viewer of a store: what is looked at, what follows from it, and who is told. The parts are in view/.

import { Chunks } from "./view/chunks.js";
import { Controls } from "./view/controls.js";
import { useDecoder } from "./view/decoding.js";
import { ElectrodeMap, placesOf } from "./view/electrodes.js";
import { Events } from "./view/events.js";
import { listen } from "./view/gestures.js";
import { clampWindow, zoomWindow } from "./view/levels.js";
import { Navigator } from "./view/navigator.js";
import { niceStep } from "./view/numbers.js";
import { readColours } from "./view/palette.js";
import { Plot } from "./view/plot.js";
import { autoScales } from "./view/scales.js";
import { ChannelList, EventList } from "./view/side.js";
import { openStore, OpenStore, Trouble } from "./view/store.js";
import { formatState, parseState } from "./view/view_state.js";
import { describeWindow, valuesAsCsv } from "./view/words.js";

const REOPEN_WAITS_S = [0.1, 0.3, 1, 2, 4];
const SETTLES_MS = 350;
const LOOKS_AGAIN_MS = 60_000;
const SMALLEST_ROW_PX = 10;
const COMFORTABLE_ROW_PX = 13;

class Viewer {
  constructor(element) {
    this.element = element;
    this.plot = new Plot(element.querySelector(".plot"));
    this.navigator = new Navigator(element.querySelector(".navigator"), { moveTo: (startS) => this.moveTo(startS) });
    this.chunks = new Chunks({
      change: () => this.loaded(),
      replaced: () => this.reopen(),
      trouble: (error, waitS) => this.controls.trouble(`${error.message} Trying again in ${Math.ceil(waitS)} s.`, () => this.chunks.retry()),
    });
    this.channels = new ChannelList(element, {
      choose: (rows) => this.choose(rows),
      mark: (row) => this.mark(row),
    });
    this.eventList = new EventList(element, { change: () => this.redraw(), go: (direction, label) => this.toEvent(direction, label) });
    this.map = new ElectrodeMap(element.querySelector(".electrodes svg"), {
      toggle: (row) => this.toggle(row),
      choose: (rows) => this.choose(rows),
      mark: (row) => this.mark(row),
    });
    this.controls = new Controls(element, this);
    this.events = new Events(null);
    this.colours = readColours(element);
    this.state = {};
    this.watch();
    listen(this.plot, this.meanings());
  }

  /** Read the store and show it, as the address says. */
  async start() {
    this.controls.say("Reading the store…");
    try {
      const told = document.getElementById("opening");
      // with the page comes what it was opened with; after that it is asked for
      this.use(told ? new OpenStore(JSON.parse(told.textContent)) : await openStore(this.element.dataset.opening), parseState(location.hash));
      told?.remove();
    } catch (error) {
      if (!(error instanceof Trouble)) console.error(error);
      this.controls.trouble(error.message, error.isFinal ? null : () => this.start());
      return;
    }
    if (document.activeElement === document.body) this.plot.element.focus({ preventScroll: true });
  }

  /** Show an opened store in a state, as far as the store has what it names. */
  use(store, state) {
    this.store = store;
    this.plot.element.classList.remove("is-stale");
    this.group = store.group(state.groupName);
    const { durationS, rateHz } = this.group;
    const isOther = state.groupName !== undefined && state.groupName !== this.group.name;
    if (isOther) state = { ...state, rows: undefined, top: 0, scales: {} }; // rows of a group that is not there
    this.state = {
      ...state,
      groupName: this.group.name,
      ...clampWindow(state.startS ?? 0, state.spanS ?? durationS, durationS, rateHz),
      rows: state.rows?.filter((row) => row < this.group.channels.length),
      perPage: state.perPage,
      top: state.top ?? 0,
      scales: state.scales ?? {},
    };
    this.autos = {};
    this.events = new Events(store.events);
    this.events.isShown = !this.state.hidesEvents;
    this.places = placesOf(store.root, this.group);
    this.element.querySelector(".electrodes").hidden = this.places.size === 0;
    this.map.show(this.group, this.places);
    this.channels.show(this.group, this.places);
    this.eventList.show(this.events);
    this.controls.show(store, this.group, this.events);
    if (this.chunks.store !== store) this.chunks.use(store);
    this.changed();
  }

  /** The store is another one now: read it again, and go on where we were. */
  async reopen() {
    this.controls.trouble("The store was replaced while it was read. Reading the new one…", null);
    let trouble;
    for (const waitS of REOPEN_WAITS_S) {
      await new Promise((resolve) => setTimeout(resolve, waitS * 1000));
      try {
        const store = await openStore(this.element.dataset.opening);
        this.navigator.activity = null;
        this.use(store, this.state);
        this.controls.notice("The store was replaced while you looked. This is the new one.");
        return;
      } catch (error) {
        trouble = error;
        this.controls.trouble(`The store was replaced or withdrawn while it was read. ${error.message}`, null);
      }
    }
    this.stop(trouble.isFinal ? "What was shown here is not served any more." : "What was shown here was replaced, and the new one cannot be read.", trouble);
  }

  /** Show nothing more of a store that is not there: what is kept of it stays on the page as it was drawn last, pale. */
  stop(sentence, trouble) {
    this.store = undefined;
    this.plot.element.classList.add("is-stale");
    this.controls.trouble(`${sentence} ${trouble.message}`, () => this.start());
  }

  // ---- what is looked at ----

  get chosen() {
    const rows = this.state.rows && new Set(this.state.rows);
    return rows ? this.group.channels.filter((channel) => rows.has(channel.row)) : this.group.channels;
  }

  /** Rows of a page: as many as are told, 0 for all of them; by default as many as can be told apart. */
  get perPage() {
    const count = this.chosen.length;
    const { perPage } = this.state;
    if (perPage !== undefined) return Math.min(perPage || count, count);
    if (this.plot.area.height / count >= SMALLEST_ROW_PX) return count;
    return this.controls.densities(count).findLast((rows) => this.plot.area.height / rows >= COMFORTABLE_ROW_PX) ?? 1;
  }

  get page() {
    return this.chosen.slice(this.state.top, this.state.top + this.perPage);
  }

  scaleOf(channel) {
    return this.state.scales[channel.type] ?? this.autos[channel.type] ?? 1;
  }

  set(change) {
    if (!this.store) return;
    if ("perPage" in change || "rows" in change) this.autos = {}; // rows of another height
    Object.assign(this.state, change);
    this.state.top = Math.max(0, Math.min(this.state.top, this.chosen.length - this.perPage));
    this.changed();
  }

  moveTo(startS) {
    this.show(startS, this.state.spanS);
  }

  show(startS, spanS) {
    this.set(clampWindow(startS, spanS, this.group.durationS, this.group.rateHz));
  }

  zoomAt(factor, atS) {
    this.set(zoomWindow(this.state, factor, atS, this.group.durationS, this.group.rateHz));
  }

  choose(rows) {
    const isAll = rows.length === this.group.channels.length;
    this.set({ rows: isAll ? undefined : rows });
  }

  toggle(row) {
    const rows = new Set(this.chosen.map((channel) => channel.row));
    if (!rows.delete(row)) rows.add(row);
    this.choose([...rows].sort((a, b) => a - b));
  }

  mark(row) {
    if (this.marked === row) return;
    this.marked = row;
    this.redraw();
  }

  toEvent(direction, label) {
    const { startS, spanS } = this.state;
    const anchor = spanS * 0.25; // an event stands a quarter into the window, so that what led to it is seen
    // at the ends of the recording the window cannot be put there, so the event gone to last is remembered
    const fromS = this.lastEvent?.startS === startS ? this.lastEvent.onsetS : startS + anchor;
    const event = this.events.next(fromS, direction, label);
    if (!event) {
      this.controls.notice(`No ${direction > 0 ? "later" : "earlier"} event${label ? " with this label" : ""}.`);
      return;
    }
    // all of an hour is no place to look at an event
    const shown = Math.min(spanS, this.events.all.length > 1 ? Math.max(10, 2000 / this.group.rateHz) : spanS);
    this.show(event.onsetS - shown * 0.25, shown);
    this.lastEvent = { startS: this.state.startS, onsetS: event.onsetS };
    this.controls.notice(`${event.label.slice(0, 80)} at ${event.onsetS.toFixed(3)} s`);
  }

  amplify(direction, type = this.controls.scaleType) {
    const types = type ? [type] : [...new Set(this.page.map((channel) => channel.type))];
    const scales = { ...this.state.scales };
    for (const each of types) scales[each] = niceStep(this.scaleOf({ type: each }), direction);
    this.set({ scales });
  }

  auto() {
    if (!this.plot.drawn) return;
    this.set({ scales: { ...this.state.scales, ...autoScales(this.page, this.plot.drawn.lines, this.plot.rowHeight) } });
  }

  switchGroup(name) {
    if (!this.store) return;
    const { startS, spanS, clock, keepsOffset, hidesEvents } = this.state;
    this.use(this.store, { groupName: name, startS, spanS, clock, keepsOffset, hidesEvents });
  }

  density(direction) {
    const steps = this.controls.densities(this.chosen.length);
    const at = steps.indexOf(this.perPage);
    const near = at < 0 ? steps.findIndex((step) => step >= this.perPage) : at;
    const next = steps[Math.max(0, Math.min(steps.length - 1, near + direction))];
    this.set({ perPage: next >= this.chosen.length ? 0 : next });
  }

  meanings() {
    const middle = () => this.state.startS + this.state.spanS / 2;
    const ready = (work) => (...given) => this.store && work(...given);
    const all = {
      pan: (share) => this.moveTo(this.state.startS + share * this.state.spanS),
      moveTo: (startS) => this.moveTo(startS),
      show: (startS, spanS) => this.show(startS, spanS),
      zoom: (factor) => this.zoomAt(factor, middle()),
      zoomAt: (factor, atS) => this.zoomAt(factor, atS),
      toStart: () => this.moveTo(0),
      toEnd: () => this.moveTo(this.group.durationS),
      all: () => this.show(0, this.group.durationS),
      scroll: (rows) => this.set({ top: this.state.top + rows }),
      scrollBy: (rows) => this.set({ top: Math.round(this.state.top + (Math.abs(rows) < 1 ? Math.sign(rows) : rows)) }),
      scrollPage: (pages) => this.set({ top: this.state.top + pages * this.perPage }),
      amplify: (direction) => this.amplify(direction),
      auto: () => this.auto(),
      toggleOffset: () => this.set({ keepsOffset: !this.state.keepsOffset }),
      event: (direction) => this.toEvent(direction),
      toggleEvents: () => this.set({ hidesEvents: !this.state.hidesEvents }),
      toggleClock: () => this.set({ clock: !this.state.clock }),
      nextGroup: () => {
        const names = this.store.groups.map((group) => group.name);
        if (names.length > 1) this.switchGroup(names[(names.indexOf(this.group.name) + 1) % names.length]);
      },
      density: (direction) => this.density(direction),
      search: () => this.channels.search.focus(),
      help: () => this.controls.help(),
      point: (place) => {
        this.plot.pointer = place;
        this.plot.drawFront();
      },
      press: (place) => {
        const row = this.plot.channelAt(place.y)?.row;
        this.mark(row === this.marked ? undefined : row);
      },
    };
    return Object.fromEntries(Object.entries(all).map(([name, work]) => [name, ready(work)]));
  }

  // ---- what follows from it ----

  changed() {
    const chosen = new Set(this.chosen.map((channel) => channel.row));
    this.channels.update(chosen);
    this.events.isShown = !this.state.hidesEvents;
    this.controls.update();
    this.ask();
    this.redraw();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settled(), SETTLES_MS);
  }

  ask() {
    const plan = this.plot.plan({ group: this.group, ...this.state });
    const named = (numbers) => numbers.map((number) => [this.group, plan.level, number]);
    const strip = this.navigator.prepare(this.group, this.get) ? [] : Navigator.wants(this.group, this.plot.area.width);
    this.chunks.want(named(plan.numbers), [...named(plan.beside), ...strip]);
  }

  get get() {
    return (group, level, number) => this.chunks.get(group, level, number);
  }

  loaded() {
    this.controls.calm();
    this.navigator.prepare(this.group, this.get);
    this.redraw();
  }

  redraw() {
    if (!this.store || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.store) this.draw();
    });
  }

  model() {
    return {
      ...this.state,
      group: this.group,
      version: this.store.version,
      durationS: this.group.durationS,
      page: this.page,
      chosen: this.chosen,
      events: this.events,
      colours: this.colours,
      marked: this.marked,
      get: this.get,
      scaleOf: (channel) => this.scaleOf(channel),
    };
  }

  draw() {
    this.plot.resize();
    this.plot.draw(this.model());
    const missing = this.page.filter((channel) => !(channel.type in this.autos));
    if (missing.length && this.plot.drawn.isWhole) {
      this.autos = { ...autoScales(missing, this.plot.drawn.lines, this.plot.rowHeight), ...this.autos };
      for (const { type } of missing) this.autos[type] ??= 1;
      this.plot.draw(this.model());
    }
    this.navigator.draw(this.model());
    this.map.update(new Set(this.chosen.map((channel) => channel.row)), this.marked);
    this.controls.drawn(this.plot.drawn, this.chunks.isLoading);
  }

  /** The window has stood still for a moment: keep it in the address, and say it in words. */
  settled() {
    if (!this.store) return;
    const scales = this.state.scales;
    history.replaceState(history.state, "", formatState({ ...this.state, scales }));
    const { level } = this.plot.plan({ group: this.group, ...this.state });
    this.controls.describe(describeWindow({ ...this.model(), level }));
  }

  /** The values of the window as CSV, or null while they are not there. */
  csv() {
    const { plan, isWhole, model } = this.plot.drawn ?? {};
    if (!isWhole || !model.page.length) return null;
    const { level, first, end, numbers } = plan;
    const pieces = numbers.map((number) => this.chunks.get(model.group, level, number));
    const column = (row, side) => pieces.flatMap((piece) => {
      const [from, to] = [Math.max(first, piece.first), Math.min(end, piece.end)];
      const at = piece.offset(row, side) - piece.first;
      return Array.from(piece.data.subarray(at + from, at + to));
    });
    const columns = model.page.map((channel) => ({
      channel,
      lo: column(channel.row, 0),
      hi: level.factor === 1 ? null : column(channel.row, 1),
    }));
    return valuesAsCsv({ columns, firstColumn: first, factor: level.factor, rateHz: model.group.rateHz });
  }

  watch() {
    new ResizeObserver(() => {
      if (!this.store || !this.plot.resize()) return;
      this.navigator.activity = null;
      this.ask();
      this.redraw();
    }).observe(this.plot.element);
    const recolour = () => {
      this.colours = readColours(this.element);
      this.redraw();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    new MutationObserver(recolour).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    // a view that is looked at for long reads nothing, and would not notice
    const look = () => document.visibilityState === "visible" && this.chunks.look();
    document.addEventListener("visibilitychange", look);
    setInterval(look, LOOKS_AGAIN_MS);
    window.addEventListener("hashchange", () => this.store && this.use(this.store, parseState(location.hash)));
  }
}

const element = document.getElementById("viewer");
if (element) {
  const viewer = new Viewer(element);
  useDecoder(element.dataset.decoder);
  element.viewer = viewer; // for tests, and for whoever looks in the browser's console
  viewer.start();
}
