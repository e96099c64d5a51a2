// Wheel, drag, pinch and keys on the plot, told as what they mean: pan, zoom, choose a span, scroll the channels.

const KEYS = {
  ArrowLeft: (on, event) => on.pan(event.shiftKey ? -1 : -0.2),
  ArrowRight: (on, event) => on.pan(event.shiftKey ? 1 : 0.2),
  ArrowUp: (on) => on.scroll(-1),
  ArrowDown: (on) => on.scroll(1),
  PageUp: (on) => on.scrollPage(-1),
  PageDown: (on) => on.scrollPage(1),
  Home: (on) => on.toStart(),
  End: (on) => on.toEnd(),
  i: (on) => on.zoom(1 / 1.6),
  o: (on) => on.zoom(1.6),
  0: (on) => on.all(),
  "+": (on) => on.amplify(-1),
  "=": (on) => on.amplify(-1),
  "-": (on) => on.amplify(1),
  a: (on) => on.auto(),
  d: (on) => on.toggleOffset(),
  n: (on) => on.event(1),
  p: (on) => on.event(-1),
  e: (on) => on.toggleEvents(),
  t: (on) => on.toggleClock(),
  g: (on) => on.nextGroup(),
  "[": (on) => on.density(-1),
  "]": (on) => on.density(1),
  "/": (on) => on.search(),
  "?": (on) => on.help(),
};

/** Listen on the plot; `on` has a function for each thing that can be meant. Returns nothing. */
export function listen(plot, on) {
  const { element } = plot;
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const meant = KEYS[event.key];
    if (!meant) return;
    event.preventDefault();
    meant(on, event);
  });
  element.addEventListener("wheel", (event) => wheel(plot, on, event), { passive: false });
  const pointers = new Pointers(plot, on);
  for (const [name, method] of [["pointerdown", "down"], ["pointermove", "move"], ["pointerup", "up"], ["pointercancel", "up"],
    ["pointerleave", "leave"], ["dblclick", "twice"]]) {
    element.addEventListener(name, (event) => pointers[method](event));
  }
}

function wheel(plot, on, event) {
  event.preventDefault();
  const { left } = plot.element.getBoundingClientRect();
  // lines and pages as pixels
  const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
  const [x, dx, dy] = [event.clientX - left, event.deltaX * unit, event.deltaY * unit];
  if (x < plot.area.left) on.scrollBy(dy / 40);
  else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) on.pan((dx || dy) / 900);
  else if (event.altKey) on.amplify(Math.sign(dy));
  else on.zoomAt(Math.exp(Math.max(-240, Math.min(240, dy)) / 300), plot.timeAt(Math.min(x, plot.area.right)));
}

class Pointers {
  constructor(plot, on) {
    this.plot = plot;
    this.on = on;
    this.down_ = new Map();
  }

  place(event) {
    const { left, top } = this.plot.element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  down(event) {
    if (event.button) return;
    const place = this.place(event);
    this.down_.set(event.pointerId, place);
    this.plot.element.setPointerCapture(event.pointerId);
    this.began = place;
    this.moved = false;
    const { startS, spanS } = this.plot.model ?? {};
    this.window = { startS, spanS };
    if (this.down_.size === 2) this.pinch = this.spread();
    else this.chooses = event.shiftKey && place.x >= this.plot.area.left;
  }

  spread() {
    const [a, b] = [...this.down_.values()];
    return { distance: Math.max(24, Math.abs(a.x - b.x)), middle: this.plot.timeAt((a.x + b.x) / 2) };
  }

  move(event) {
    const { plot, on } = this;
    if (!plot.model) return;
    const place = this.place(event);
    if (!this.down_.has(event.pointerId)) {
      if (event.pointerType !== "touch") on.point(place);
      return;
    }
    this.down_.set(event.pointerId, place);
    if (this.down_.size === 2) {
      const now = this.spread();
      on.zoomAt(this.pinch.distance / now.distance, now.middle);
      this.pinch = this.spread();
      this.moved = true;
      return;
    }
    if (Math.hypot(place.x - this.began.x, place.y - this.began.y) > 4) this.moved = true;
    if (!this.moved) return;
    if (this.chooses) {
      on.point({ ...place, fromX: this.began.x });
      return;
    }
    if (this.began.x < plot.area.left) return;
    on.moveTo(this.window.startS - ((place.x - this.began.x) / plot.area.width) * this.window.spanS);
    plot.element.classList.add("is-dragged");
  }

  up(event) {
    const { plot, on } = this;
    if (!this.down_.delete(event.pointerId)) return;
    plot.element.classList.remove("is-dragged");
    if (this.chooses && this.moved) {
      const place = this.place(event);
      on.point(null);
      const times = [plot.timeAt(this.began.x), plot.timeAt(place.x)].sort((a, b) => a - b);
      on.show(times[0], times[1] - times[0]);
    } else if (!this.moved && event.type === "pointerup") {
      on.press(this.place(event));
    }
    this.chooses = false;
    const [left] = this.down_.values();
    if (left) { // one of two fingers stays: it pans from here
      this.began = left;
      this.window = { startS: plot.model.startS, spanS: plot.model.spanS };
      this.moved = true;
    }
  }

  leave(event) {
    if (!this.down_.has(event.pointerId)) this.on.point(null);
  }

  twice(event) {
    const place = this.place(event);
    if (place.x >= this.plot.area.left) this.on.zoomAt(event.shiftKey ? 3 : 1 / 3, this.plot.timeAt(place.x));
  }
}
