// The arithmetic of the viewer, away from a browser: which level, which columns, how numbers read, what an address says.
// `pytest tests/api/dashboard/test_viewer_parts.py` runs this beside the sources and their packages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decodeBlosc } from "./src/view/blosc.js";
import { parseTime } from "./src/view/controls.js";
import { fillEnvelope, fillLines, placesOf, rangesOf } from "./src/view/envelope.js";
import { Events } from "./src/view/events.js";
import { chooseLevel, chunksOf, clampWindow, columnsOf, zoomWindow } from "./src/view/levels.js";
import { digitsFor, formatQuantity, formatTime, formatUnit, niceAtLeast, niceStep, tickStep, ticksIn } from "./src/view/numbers.js";
import { fitSphere, placeInWords, projectElectrodes } from "./src/view/projection.js";
import { Raster, pixelColour } from "./src/view/raster.js";
import { autoScales } from "./src/view/scales.js";
import { formatRows, formatState, parseRows, parseState } from "./src/view/view_state.js";
import { cell, valuesAsCsv } from "./src/view/words.js";

const seeded = (seed) => () => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed / 2147483648;
};

function pyramid(samples) {
  const levels = [{ number: 0, factor: 1, columns: samples, chunk: 1000 }];
  for (let factor = 4, number = 1; samples / factor >= 128; factor *= 4, number += 1) {
    const columns = Math.floor(samples / factor);
    levels.push({ number, factor, columns, chunk: Math.min(1024, columns) });
  }
  return levels;
}

test("a level has 0.6 to 2.4 columns for a pixel wherever the pyramid has such a level", () => {
  const levels = pyramid(600000);
  for (const pixels of [300, 818, 1200, 2200, 3800]) {
    for (const spanS of [0.4, 2, 9, 11, 60, 300, 900, 2400]) {
      const level = chooseLevel(levels, 250, spanS, pixels);
      const perPixel = (spanS * 250) / level.factor / pixels;
      if (level.number) assert.ok(perPixel >= 0.6, `${spanS} s on ${pixels} px: ${perPixel}`);
      if (level !== levels[levels.length - 1]) assert.ok(perPixel < 2.4, `${spanS} s on ${pixels} px: ${perPixel}`);
    }
    // forty minutes are at most three chunks, whatever the screen
    const level = chooseLevel(levels, 250, 2400, pixels);
    assert.ok(chunksOf(level, ...columnsOf(level, 250, 0, 2400)).length <= 3);
  }
  assert.equal(chooseLevel(pyramid(100), 250, 0.4, 1000).number, 0, "a recording without a pyramid");
});

test("columns and chunks of a window lie in the recording", () => {
  const [, level] = pyramid(600000);
  assert.deepEqual(columnsOf(level, 250, 0, 10), [0, 626]);
  assert.deepEqual(columnsOf(level, 250, 2399, 10), [149937, 150000]);
  assert.deepEqual(columnsOf(level, 250, 5000, 10), [150000, 150000]);
  assert.deepEqual(chunksOf(level, 1000, 1025), [0, 1]);
  assert.deepEqual(chunksOf(level, 1024, 1025), [1]);
  assert.deepEqual(chunksOf(level, 7, 7), []);
});

test("zooming keeps the moment under the pointer and stays in the recording", () => {
  const near = (got, startS, spanS) => {
    assert.ok(Math.abs(got.startS - startS) < 1e-9 && Math.abs(got.spanS - spanS) < 1e-9, JSON.stringify(got));
  };
  near(zoomWindow({ startS: 10, spanS: 20 }, 0.5, 15, 100, 250), 12.5, 10);
  near(zoomWindow({ startS: 0, spanS: 100 }, 2, 50, 100, 250), 0, 100);
  near(zoomWindow({ startS: 0, spanS: 1 }, 1e-9, 0.5, 100, 250), 0.484, 0.032);
  near(clampWindow(95, 10, 100, 250), 90, 10);
  near(clampWindow(-5, 10, 100, 250), 0, 10);
  near(clampWindow(3, 10, 0.01, 250), 0, 0.01);
  const random = seeded(5);
  for (let round = 0; round < 500; round += 1) {
    const before = clampWindow(random() * 100, random() * 50 + 0.1, 100, 250);
    const anchor = before.startS + random() * before.spanS;
    const after = zoomWindow(before, 0.3 + random() * 3, anchor, 100, 250);
    assert.ok(after.startS >= 0 && after.startS + after.spanS <= 100 + 1e-9);
    assert.ok(anchor >= after.startS - 1e-9 && anchor <= after.startS + after.spanS + 1e-9);
  }
});

test("an envelope is the least and greatest of the columns that a pixel touches, however it is cut into pieces", () => {
  const random = seeded(9);
  for (let round = 0; round < 200; round += 1) {
    const count = 20 + Math.floor(random() * 200);
    const data = Int16Array.from({ length: count }, () => random() * 1000 - 500);
    const shape = { start: random() * 10, perPixel: 0.3 + random() * 4 };
    const pixels = 5 + Math.floor(random() * 30);
    const cut = Math.floor(random() * count);
    const [lo, hi] = [new Float32Array(pixels).fill(NaN), new Float32Array(pixels).fill(NaN)];
    for (const [first, end] of [[0, cut], [cut, count]]) {
      const piece = { data: data.subarray(first, end), first, end, offset: () => 0 };
      fillEnvelope(lo, hi, piece, 0, rangesOf(piece, shape, 0, pixels));
    }
    for (let pixel = 0; pixel < pixels; pixel += 1) {
      const left = shape.start + pixel * shape.perPixel;
      const touched = [...data].filter((_, at) => at + 1 > left + 1e-9 && at < left + shape.perPixel - 1e-9);
      assert.equal(lo[pixel], touched.length ? Math.min(...touched) : NaN);
      assert.equal(hi[pixel], touched.length ? Math.max(...touched) : NaN);
    }
  }
});

test("between samples the straight line is drawn, through every sample, and nothing where none is known", () => {
  const values = Float32Array.from([0, 10, -10, NaN, 4]);
  const pixels = 50;
  const [lo, hi] = [new Float32Array(pixels).fill(NaN), new Float32Array(pixels).fill(NaN)];
  fillLines(lo, hi, values, placesOf({ start: 0, perPixel: 0.1 }, values.length, pixels));
  assert.ok(Math.abs(lo[4] - 4) < 1e-5 && Math.abs(hi[4] - 5) < 1e-5, "from 4 to 5 on the fifth pixel");
  assert.equal(hi[10], 10);
  assert.equal(lo[20], -10);
  assert.ok(Number.isNaN(lo[25]));
  assert.equal(lo[40], 4);
  assert.ok(Number.isNaN(hi[45]), "nothing behind the last sample");
});

test("numbers are round and read as people write them", () => {
  assert.deepEqual([0.3, 1, 1.1, 30, 70, 0].map(niceAtLeast).map((value) => Number(value.toPrecision(6))), [0.5, 1, 2, 50, 100, 1]);
  assert.deepEqual([niceStep(50, 1), niceStep(50, -1), niceStep(1, -1), niceStep(7, 1)], [100, 20, 0.5, 10]);
  assert.equal(tickStep(2400, 10), 300);
  assert.deepEqual(ticksIn(0.95, 0.2, 0.05).map((tick) => tick.toFixed(2)), ["0.95", "1.00", "1.05", "1.10", "1.15"]);
  assert.deepEqual([1, 0.5, 0.05, 0.002].map(digitsFor), [0, 1, 2, 3]);
  assert.equal(formatTime(3723.5, { clock: true, digits: 1 }), "1:02:03.5");
  assert.equal(formatTime(59.97, { clock: true, digits: 1 }), "1:00.0");
  assert.equal(formatTime(12.5, { digits: 2 }), "12.50 s");
  assert.deepEqual(["1:02:03", "62.5", "1:02,5", "x", "1:2:3:4", ""].map(parseTime), [3723, 62.5, 62.5, undefined, undefined, undefined]);
});

test("physical values get a prefix that fits, and a missing unit is said to be missing", () => {
  assert.equal(formatQuantity(4.2e-13, "T"), "420 fT");
  assert.equal(formatQuantity(-0.00005, "V"), "-50 µV");
  assert.equal(formatQuantity(1500, "uV"), "1.5 mV");
  assert.equal(formatQuantity(0, "uV"), "0 µV");
  assert.equal(formatQuantity(3e-12, "T/m"), "3 pT/m");
  assert.equal(formatQuantity(12.345, "n/a"), "12.3 (no unit)");
  assert.equal(formatQuantity(12.345, "rad"), "12.3 rad");
  assert.deepEqual(["uV", "n/a", "", "degC"].map(formatUnit), ["µV", "no unit", "no unit", "degC"]);
});

test("an address holds the view and gives it back; what is wrong in one is left out", () => {
  const state = { groupName: "eeg_250hz", startS: 12.125, spanS: 3, rows: [0, 1, 2, 7], perPage: 0, top: 2,
    scales: { "EEG": 50, "a:b": 0.000002 }, keepsOffset: true, clock: true, hidesEvents: true };
  assert.deepEqual(parseState(formatState(state)), state);
  assert.deepEqual(parseState("#t=-1&w=abc&n=1.5&y=EEG:-2&y=:3&ch=5-2&top=x"), {});
  assert.deepEqual(parseRows("0-2,9"), [0, 1, 2, 9]);
  assert.equal(parseRows("0-99999999"), undefined);
  assert.equal(formatRows([9, 2, 1, 0]), "0-2,9");
  assert.deepEqual(parseRows(formatRows([])), []);
});

test("events are found by time, hidden by label, and gone through in order", () => {
  const events = new Events({ onset: [5, 1, null, 3], duration: [0, 3, 0, 0], code: [1, 0, 0, 7], labels: { 0: "go", 1: "<b>stop</b>" } });
  assert.deepEqual(events.kinds.map((kind) => [kind.label, kind.count]), [["<b>stop</b>", 1], ["go", 2], ["code 7", 1]]);
  assert.equal(events.withoutOnset, 1);
  assert.deepEqual(events.within(2, 2).map((event) => event.onsetS), [1, 3], "one reaches into the window");
  assert.equal(events.next(1, 1).onsetS, 3);
  assert.equal(events.next(3, -1).onsetS, 1);
  assert.equal(events.next(0, 1, "<b>stop</b>").onsetS, 5);
  assert.equal(events.next(5, 1), undefined);
  events.kinds[2].isShown = false;
  assert.deepEqual(events.within(0, 9).map((event) => event.onsetS), [1, 5]);
  assert.equal(new Events(null).within(0, 9).length, 0);
});

test("electrodes lie on a head with the nose at the top, whichever way their system points", () => {
  const head = {};
  for (let turn = 0; turn < 12; turn += 1) {
    for (const height of [0, 0.5]) {
      const ring = Math.sqrt(1 - height ** 2);
      head[`${turn}-${height}`] = [Math.sin((turn * Math.PI) / 6) * ring, Math.cos((turn * Math.PI) / 6) * ring, height].map((value) => value * 90 + 3);
    }
  }
  head.Cz = [3, 3, 93];
  const flat = new Map(projectElectrodes(head, "CapTrak").map((place) => [place.label, place]));
  const near = (place, x, y) => assert.ok(Math.hypot(place.x - x, place.y - y) < 1e-6, JSON.stringify(place));
  near(flat.get("Cz"), 0, 0);
  near(flat.get("0-0"), 0, 1);
  near(flat.get("3-0"), 1, 0);
  near(flat.get("3-0.5"), 2 / 3, 0); // 30 degrees above the rim
  const turned = Object.fromEntries(Object.entries(head).map(([label, [x, y, z]]) => [label, [y, -x, z]]));
  near(projectElectrodes(turned, "CTF").find((place) => place.label === "3-0"), 1, 0);
  assert.equal(placeInWords(flat.get("0-0")), "front, midline");
  assert.equal(fitSphere([{ x: 0, y: 0, z: 0 }]), null);
  assert.ok(projectElectrodes({ a: [1, 1, 1], b: [2, 3, 1] }, "", "iEEG").every(({ x, y }) => Math.hypot(x, y) <= 1.0001));
  assert.deepEqual(projectElectrodes(undefined), []);
});

test("lines cover the pixels that they should, joined where columns do not meet", () => {
  globalThis.ImageData = class {
    constructor(width, height) {
      this.data = new Uint8ClampedArray(width * height * 4);
    }
  };
  const raster = new Raster(4, 20);
  raster.spans([2, 10, NaN, 5.5], [4, 12, NaN, 6], pixelColour("#102030"), { thickness: 1, alpha: 1, inner: 1 });
  const opaque = (x, y) => raster.pixels[y * 4 + x] >>> 24;
  assert.deepEqual([1, 2, 3, 4].map((y) => opaque(0, y)), [0, 255, 255, 0]);
  assert.deepEqual([3, 4, 9, 11, 12].map((y) => opaque(1, y)), [0, 255, 255, 255, 0], "joined with the column before");
  assert.deepEqual([...Array(20).keys()].map((y) => opaque(2, y)).filter(Boolean), []);
  assert.deepEqual([5, 6].map((y) => opaque(3, y)), [191, 64], "never thinner than the line");
  assert.equal(raster.pixels[2 * 4] & 0xffffff, 0x302010);
  assert.equal(pixelColour("rgb(16, 32, 48)"), 0x302010);
});

test("the fitting scale makes the typical channel of each type fill its row", () => {
  const line = (height) => ({ lo: new Float32Array(10).fill(-height / 2), hi: new Float32Array(10).fill(height / 2) });
  const channels = [["EEG", 2], ["EEG", 2], ["EOG", 1], ["TRIG", 1]].map(([type, scale], row) => ({ row, type, scale }));
  const lines = new Map([[0, line(40)], [1, line(41)], [2, line(300)], [3, line(0)]]);
  assert.deepEqual(autoScales(channels, lines, 30), { EEG: 100, EOG: 500 });
  assert.deepEqual(autoScales(channels, lines, 2).EEG, 20, "low rows overlap");
  assert.deepEqual(autoScales(channels, lines, 10).EEG, 100, "the rows of a page on a phone do not");
});

test("CSV has a line for each sample, units, and no formula", () => {
  const channel = { label: "=A,\"1\"", unit: "uV", scale: 0.5, offset: 1 };
  assert.equal(valuesAsCsv({ columns: [{ channel, lo: [2, 4], hi: null }], firstColumn: 10, factor: 1, rateHz: 100 }),
    'time_s,"\'=A,""1"" [µV]"\r\n0.1000,2\r\n0.1100,3\r\n');
  const both = valuesAsCsv({ columns: [{ channel: { ...channel, label: "Cz", scale: -0.5 }, lo: [2], hi: [4] }], firstColumn: 1, factor: 4, rateHz: 100 });
  assert.equal(both, "time_s,Cz [µV] least,Cz [µV] greatest\r\n0.0400,-1,0\r\n");
  assert.deepEqual(["-1+2", "Fp1", "a\nb"].map(cell), ["'-1+2", "Fp1", '"a\nb"']);
});

test("chunks are decoded as c-blosc packed them, and damaged ones are not", () => {
  const cases = JSON.parse(readFileSync("packed.json", "utf8"));
  assert.ok(cases.length > 20);
  for (const { name, packed, plain } of cases) {
    const bytes = Buffer.from(packed, "base64");
    assert.deepEqual(Buffer.from(decodeBlosc(bytes)), Buffer.from(plain, "base64"), name);
    assert.throws(() => decodeBlosc(bytes.subarray(0, bytes.length - 1)), name);
  }
});
