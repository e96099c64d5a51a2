// The events of a recording: found by time, hidden by label, gone through one after the other.

export class Events {
  /** `told` is what the opening document says: onsets and durations in seconds, codes, labels by code; or null. */
  constructor(told) {
    const labels = told?.labels ?? {};
    const descriptions = told?.descriptions ?? {};
    const byLabel = new Map();
    this.all = [];
    this.withoutOnset = 0;
    (told?.onset ?? []).forEach((onsetS, number) => {
      const code = String(told.code[number]);
      const label = String(labels[code] ?? `code ${code}`);
      if (!byLabel.has(label)) {
        byLabel.set(label, { label, colour: byLabel.size, count: 0, isShown: true, description: descriptions[code] });
      }
      const kind = byLabel.get(label);
      kind.count += 1;
      if (typeof onsetS !== "number") this.withoutOnset += 1;
      else this.all.push({ onsetS, durationS: told.duration[number] ?? 0, label, colour: kind.colour, kind });
    });
    this.all.sort((a, b) => a.onsetS - b.onsetS);
    this.kinds = [...byLabel.values()];
    this.longestS = this.all.reduce((longest, event) => Math.max(longest, event.durationS), 0);
    this.isTruncated = Boolean(told?.is_truncated);
    this.isShown = true;
  }

  /** Shown events that lie in or reach into the window, by onset. */
  within(startS, spanS) {
    if (!this.isShown) return [];
    const found = [];
    for (let at = this.firstFrom(startS - this.longestS); at < this.all.length; at += 1) {
      const event = this.all[at];
      if (event.onsetS > startS + spanS) break;
      if (event.kind.isShown && event.onsetS + event.durationS >= startS) found.push(event);
    }
    return found;
  }

  /** The shown event that comes next after (`direction` 1) or before (-1) a moment; of one label only when it is named. */
  next(fromS, direction, label = undefined) {
    const fits = (event) => event.kind.isShown && (label === undefined || event.label === label);
    const nudge = 1e-6; // the event that the window stands at is not the next one
    if (direction > 0) return this.all.slice(this.firstFrom(fromS + nudge)).find(fits);
    return this.all.slice(0, this.firstFrom(fromS - nudge)).findLast(fits);
  }

  firstFrom(timeS) {
    let [low, high] = [0, this.all.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.all[middle].onsetS < timeS) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
