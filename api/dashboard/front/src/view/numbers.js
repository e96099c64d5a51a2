// Numbers as people read them: round steps, times, and physical quantities with a prefix that fits.

/** The smallest of 1, 2, 5 times a power of ten that is at least `value`. */
export function niceAtLeast(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  // 1e-9: 0.3 / 0.1 is 2.9999999999999996
  const found = [1, 2, 5, 10].find((step) => step * power >= value * (1 - 1e-9));
  return found * power;
}

/** The next larger (`direction` 1) or smaller (-1) of 1, 2, 5 times a power of ten. */
export function niceStep(value, direction) {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20].map((step) => step * power);
  const beyond = direction > 0 ? steps.filter((step) => step > value * 1.001) : steps.filter((step) => step < value * 0.999);
  return direction > 0 ? beyond[0] : beyond[beyond.length - 1];
}

const SECOND_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600,
  7200, 14400, 21600, 43200, 86400];

/** Seconds between ticks, so that at most `most` of them lie in the span. */
export function tickStep(spanS, most) {
  const fewest = spanS / Math.max(1, most);
  return SECOND_STEPS.find((step) => step >= fewest) ?? niceAtLeast(fewest);
}

/** The ticks in [startS, startS + spanS], multiples of `stepS`. */
export function ticksIn(startS, spanS, stepS) {
  const ticks = [];
  for (let number = Math.ceil(startS / stepS - 1e-9); number * stepS <= startS + spanS + stepS * 1e-9; number += 1) {
    ticks.push(number * stepS);
  }
  return ticks;
}

/** Digits behind the point that tell times apart that are `stepS` apart. */
export function digitsFor(stepS) {
  return stepS >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(stepS) - 1e-9));
}

/** A time as seconds, `12.50 s`, or as a clock, `1:02:03.5`. */
export function formatTime(timeS, { clock = false, digits = 0 } = {}) {
  if (!clock) return `${timeS.toFixed(digits)} s`;
  // rounded first, so that 59.97 with one digit becomes 1:00.0 and not 0:60.0
  const scaled = Math.round(Math.abs(timeS) * 10 ** digits);
  const whole = Math.floor(scaled / 10 ** digits);
  const rest = digits ? `.${String(scaled % 10 ** digits).padStart(digits, "0")}` : "";
  const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  const sign = timeS < 0 && scaled > 0 ? "−" : "";
  return `${sign}${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds)}${rest}`;
}

const PREFIXES = { f: 1e-15, p: 1e-12, n: 1e-9, u: 1e-6, "µ": 1e-6, "μ": 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6 };
const SHOWN = [["f", 1e-15], ["p", 1e-12], ["n", 1e-9], ["µ", 1e-6], ["m", 1e-3], ["", 1], ["k", 1e3], ["M", 1e6]];
const SCALED = /^([fpnuµμmkM]?)(V|T|T\/m|A|S|Ohm|Ω)$/;
const MISSING = new Set(["", "n/a", "na", "none", "unknown", "null"]);

/** Whether a channel says in which unit it is. */
export function hasUnit(unit) {
  return !MISSING.has(String(unit ?? "").trim().toLowerCase());
}

/** A unit as it is shown: `uV` as µV, and a missing one said to be so. */
export function formatUnit(unit) {
  if (!hasUnit(unit)) return "no unit";
  const found = SCALED.exec(unit);
  return found ? `${found[1] === "u" || found[1] === "μ" ? "µ" : found[1]}${found[2]}` : String(unit);
}

/** A value with its unit and a prefix that keeps the number between 1 and 1000: 4.2e-13 T is `420 fT`. */
export function formatQuantity(value, unit, digits = 3) {
  if (!Number.isFinite(value)) return "no value";
  const found = hasUnit(unit) ? SCALED.exec(unit) : null;
  if (!found) return `${trimmed(value, digits)} ${hasUnit(unit) ? unit : "(no unit)"}`;
  const base = value * PREFIXES[found[1]];
  const fits = ([, factor]) => Math.abs(base) >= factor * (1 - 1e-9);
  const [prefix, factor] = base === 0 ? [formatUnit(unit).slice(0, -found[2].length), PREFIXES[found[1]]]
    : SHOWN.findLast(fits) ?? SHOWN[0];
  return `${trimmed(base / factor, digits)} ${prefix}${found[2]}`;
}

function trimmed(value, digits) {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1e6 || Math.abs(rounded) < 1e-4 ? rounded.toExponential() : String(rounded);
}
