// Draws envelopes into pixels by hand. A canvas path with 129 x 2,000 strokes takes several frames; writing the pixels takes
// a few milliseconds, and the lines look the same on every machine. The ends of each vertical span are drawn as transparent
// as the part of the pixel that they leave free, which is what makes the line smooth.

/** A picture of `width` x `height` device pixels, to be put on a canvas. */
export class Raster {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  clear() {
    this.pixels.fill(0);
  }

  /**
   * One channel: `top[x]` and `bottom[x]` are where its column x begins and ends, in pixels from above; NaN leaves it out.
   *
   * `colour` is 0xBBGGRR. Neighbouring columns are joined, and a line is at least `thickness` high. `alpha` is that of its
   * edges, `inner` that of what lies between them.
   */
  spans(top, bottom, colour, { thickness, alpha, inner }) {
    const { width, height, pixels } = this;
    const solid = Math.round(255 * alpha);
    const between = Math.round(255 * inner);
    const full = ((between << 24) | colour) >>> 0;
    let above = NaN;
    let below = NaN;
    for (let x = 0; x < width; x += 1) {
      const ownTop = top[x];
      const ownBottom = bottom[x];
      let a = ownTop;
      let b = ownBottom;
      if (above > b) b = above; // the column before ends where this one has not begun, or the other way round
      if (below < a) a = below;
      above = ownTop;
      below = ownBottom;
      if (b - a < thickness) {
        const middle = (a + b) / 2;
        a = middle - thickness / 2;
        b = middle + thickness / 2;
      }
      if (!(b > 0 && a < height)) continue; // NaN, too
      if (a < 0) a = 0;
      if (b > height) b = height;
      const first = a | 0;
      const last = Math.ceil(b) - 1;
      let place = first * width + x;
      if (first === last) {
        this.blend(place, (b - a) * solid, colour);
        continue;
      }
      this.blend(place, (first + 1 - a) * solid, colour);
      place += width;
      for (let y = first + 1; y < last; y += 1, place += width) if (pixels[place] >>> 24 < between) pixels[place] = full;
      this.blend(place, (b - last) * solid, colour);
    }
  }

  /** A pixel that a line covers in part; the line that covers most of it is seen. */
  blend(place, opaque, colour) {
    const whole = (opaque + 0.5) | 0;
    if (whole >= this.pixels[place] >>> 24) this.pixels[place] = (whole << 24) | colour;
  }
}

/** `rgb(12, 34, 56)`, `#abc` or `#aabbcc` as 0xBBGGRR, the byte order of pixels. */
export function pixelColour(css) {
  const text = css.trim();
  let parts = [0, 0, 0];
  if (text.startsWith("#")) {
    const digits = text.length === 4 ? [...text.slice(1)].map((digit) => digit + digit).join("") : text.slice(1);
    parts = [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  } else {
    parts = (text.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  }
  return (parts[2] << 16) | (parts[1] << 8) | parts[0];
}
