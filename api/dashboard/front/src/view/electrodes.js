// The electrode map: where the channels sit. A click shows or hides one; dragging a frame chooses those inside it.

import { placeInWords, projectElectrodes } from "./projection.js";

const SVG = "http://www.w3.org/2000/svg";

/** Places by channel label; empty when the store has no positions for any channel of the group. */
export function placesOf(root, group) {
  const known = new Map(projectElectrodes(root.electrode_positions, root.electrode_coordinate_system, group.modality)
    .map((place) => [place.label, place]));
  return new Map(group.channels.filter((channel) => known.has(channel.label)).map((channel) => [channel.row, known.get(channel.label)]));
}

export class ElectrodeMap {
  /** `on.toggle(row)`, `on.choose(rows)`, `on.mark(row or undefined)`. */
  constructor(svg, on) {
    this.svg = svg;
    this.on = on;
    svg.addEventListener("pointerdown", (event) => this.begin(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    svg.addEventListener("pointerup", (event) => this.end(event));
    svg.addEventListener("pointercancel", () => this.forget());
    svg.addEventListener("pointerleave", () => this.on.mark(undefined));
  }

  show(group, places) {
    const size = places.size > 150 ? 0.022 : places.size > 70 ? 0.032 : 0.045;
    this.svg.replaceChildren();
    this.add("path", { d: "M -0.12 -1.0 L 0 -1.14 L 0.12 -1.0", class: "head" });
    this.add("path", { d: "M -1.02 -0.16 Q -1.12 0 -1.02 0.16 M 1.02 -0.16 Q 1.12 0 1.02 0.16", class: "head" });
    this.add("circle", { cx: 0, cy: 0, r: 1.02, class: "head" });
    this.dots = new Map();
    for (const channel of group.channels) {
      const place = places.get(channel.row);
      if (!place) continue;
      const dot = this.add("circle", { cx: place.x, cy: -place.y, r: size, class: "electrode" });
      dot.dataset.row = channel.row;
      const title = document.createElementNS(SVG, "title");
      title.textContent = `${channel.label} (${placeInWords(place)})`;
      dot.append(title);
      this.dots.set(channel.row, dot);
    }
    this.frame = this.add("rect", { class: "frame", hidden: "" });
  }

  add(kind, attributes) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    this.svg.append(made);
    return made;
  }

  update(chosen, marked) {
    for (const [row, dot] of this.dots ?? []) {
      dot.classList.toggle("is-shown", chosen.has(row));
      dot.classList.toggle("is-marked", row === marked);
    }
  }

  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  begin(event) {
    if (event.button) return;
    this.from = this.at(event);
    this.row = event.target.dataset?.row;
    this.svg.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.from) {
      const row = event.target.dataset?.row;
      this.on.mark(row === undefined ? undefined : Number(row));
      return;
    }
    const [x, y] = this.at(event);
    const [left, top] = [Math.min(x, this.from[0]), Math.min(y, this.from[1])];
    const [width, height] = [Math.abs(x - this.from[0]), Math.abs(y - this.from[1])];
    if (Math.max(width, height) < 0.05) return;
    this.box = { left, top, width, height };
    this.frame.removeAttribute("hidden");
    for (const [name, value] of Object.entries({ x: left, y: top, width, height })) this.frame.setAttribute(name, value);
  }

  end() {
    const { box, row } = this;
    this.forget();
    if (box) {
      const inside = (dot) => {
        const [x, y] = [Number(dot.getAttribute("cx")), Number(dot.getAttribute("cy"))];
        return x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height;
      };
      const rows = [...this.dots].filter(([, dot]) => inside(dot)).map(([each]) => each);
      if (rows.length) this.on.choose(rows);
    } else if (row !== undefined) {
      this.on.toggle(Number(row));
    }
  }

  forget() {
    this.from = undefined;
    this.box = undefined;
    this.row = undefined;
    this.frame?.setAttribute("hidden", "");
  }
}
