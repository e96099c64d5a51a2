// The chunks that are kept, those that are on their way, and those that are not wanted any more.
//
// `want` is called whenever the window changes. What is on its way and not wanted is given up; what is missing is asked for;
// when the last of it has come, the store is checked once for all of it (`store.js` says why), and only then is it shown.
// When everything wanted is there, the neighbours that somebody is likely to move to are read ahead.

import { Replaced, Trouble } from "./store.js";

const MOST_BYTES = 128 * 1024 * 1024;
const WAITS_S = [1, 2, 4, 8, 15, 30];

export class Chunks {
  /**
   * `on.change()` when there is more to draw, `on.replaced()` when the store is another one now, `on.trouble(error, waitS)`
   * when it cannot be read; it is tried again after `waitS` seconds.
   */
  constructor(on) {
    this.on = on;
    this.checks = 0;
    this.use(null);
  }

  /** Begin anew with a store, or with none. */
  use(store) {
    for (const { control } of this.coming?.values() ?? []) control.abort();
    clearTimeout(this.timer);
    this.store = store;
    this.kept = new Map(); // key -> piece, the longest unused first
    this.unchecked = new Map();
    this.coming = new Map();
    this.bytes = 0;
    this.wanted = [];
    this.ahead = [];
    this.failures = 0;
    this.checking = false;
    this.pauses = false;
  }

  /** The piece that holds chunk `number` of a level, or undefined as long as there is none. */
  get(group, level, number) {
    return this.kept.get(keyOf(group, level, number));
  }

  get isLoading() {
    return this.wanted.some((each) => !this.kept.has(each.key));
  }

  /** Say what is looked at, and what may be looked at next: lists of [group, level, number]. */
  want(wanted, ahead = []) {
    const named = ([group, level, number]) => ({ group, level, number, key: keyOf(group, level, number) });
    this.wanted = wanted.map(named);
    this.ahead = ahead.map(named);
    const live = new Set([...this.wanted, ...this.ahead].map((each) => each.key));
    for (const [key, { control }] of this.coming) {
      if (live.has(key)) continue;
      control.abort();
      this.coming.delete(key);
    }
    for (const { key } of this.wanted) { // used now: the last to be dropped
      const piece = this.kept.get(key);
      if (!piece) continue;
      this.kept.delete(key);
      this.kept.set(key, piece);
    }
    this.pump();
  }

  /** Try again now what could not be read. */
  retry() {
    clearTimeout(this.timer);
    this.pauses = false;
    this.pump();
  }

  pump() {
    if (!this.store || this.pauses) return;
    const missing = (list) => list.filter(({ key }) => !this.kept.has(key) && !this.unchecked.has(key));
    const wanted = missing(this.wanted);
    for (const each of wanted) this.fetch(each);
    if (wanted.length || this.checking) return;
    if (this.wanted.some(({ key }) => this.unchecked.has(key))) {
      this.check();
      return;
    }
    const ahead = missing(this.ahead);
    for (const each of ahead) this.fetch(each);
    if (!ahead.length && this.unchecked.size) this.check();
  }

  async fetch(each) {
    if (this.coming.has(each.key)) return;
    const { store } = this;
    const control = new AbortController();
    this.coming.set(each.key, { control });
    const isCurrent = () => this.store === store && this.coming.get(each.key)?.control === control;
    try {
      const piece = await store.chunk(each.group, each.level, each.number, control.signal);
      if (!isCurrent()) return;
      this.coming.delete(each.key);
      this.unchecked.set(each.key, piece);
    } catch (error) {
      if (!isCurrent()) return;
      this.coming.delete(each.key);
      // requests that were joined into one are given up together: whoever is still wanted asks again below
      if (error.name !== "AbortError") {
        await this.failed(store, error);
        return;
      }
    }
    this.pump();
  }

  async check() {
    const { store } = this;
    const batch = [...this.unchecked];
    this.checking = true;
    this.checks += 1;
    try {
      await store.check();
    } catch (error) {
      if (this.store !== store) return;
      this.checking = false;
      await this.failed(store, error);
      return;
    }
    if (this.store !== store) return;
    this.checking = false;
    this.failures = 0;
    for (const [key, piece] of batch) {
      this.unchecked.delete(key);
      this.kept.set(key, piece);
      this.bytes += piece.bytes;
    }
    this.drop();
    this.on.change();
    this.pump();
  }

  /** See whether the store is still the one that was opened, though nothing has to be read of it. */
  async look() {
    const { store } = this;
    if (!store || this.checking || this.pauses) return;
    try {
      await store.check();
    } catch (error) {
      // a server that does not answer is said when something is wanted of it
      if (this.store === store && error instanceof Replaced) await this.failed(store, error);
    }
  }

  drop() {
    const live = new Set(this.wanted.map(({ key }) => key));
    for (const [key, piece] of this.kept) {
      if (this.bytes <= MOST_BYTES) return;
      if (live.has(key)) continue;
      this.kept.delete(key);
      this.bytes -= piece.bytes;
    }
  }

  async failed(store, error) {
    if (!(error instanceof Trouble) && !(error instanceof Replaced)) {
      // a decoder that fails may have been given parts of two stores: it counts only if there was one
      try {
        await store.check();
        const cause = String(error.cause?.message ?? error.message).slice(0, 160);
        error = new Trouble(`A part of this store cannot be decoded (${cause}).`);
      } catch (found) {
        error = found;
      }
      if (this.store !== store) return;
    }
    if (error instanceof Replaced) {
      this.use(null);
      this.on.replaced();
      return;
    }
    if (this.pauses) return;
    const waitS = error.retryAfterS ?? WAITS_S[Math.min(this.failures, WAITS_S.length - 1)];
    this.failures += 1;
    this.pauses = true;
    this.timer = setTimeout(() => this.retry(), 1000 * waitS);
    this.on.trouble(error, waitS);
  }
}

const keyOf = (group, level, number) => `${group.name}/${level.number}/${number}`;
