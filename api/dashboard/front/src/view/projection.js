// Electrodes on a flat head: from positions in three dimensions to a circle with the nose on top.

// Systems whose first axis points to the nose and whose second points to the left ear; all others are taken as x to the
// right and y to the nose, as BIDS has it for most templates.
const NOSE_IS_X = /^(CTF|EEGLAB(-HJ)?|4DBTI|KITYOKOGAWA|CHIETIITAB)$/i;

/**
 * Places of electrodes in the unit circle: [{label, x, y}], x to the right, y to the nose.
 *
 * Electrodes on a head are unrolled from its top, so that equal angles are equal distances; others, such as those inside a
 * brain, are looked at from above.
 */
export function projectElectrodes(positions, system = "", modality = "EEG") {
  const turned = Object.entries(positions ?? {}).map(([label, [x, y, z]]) =>
    NOSE_IS_X.test(system) ? { label, x: -y, y: x, z } : { label, x, y, z });
  if (!turned.length) return [];
  const sphere = /^(EEG|MEG)$/i.test(modality) ? fitSphere(turned) : null;
  const flat = sphere ? turned.map((each) => unrolled(each, sphere)) : turned;
  return withinCircle(flat, sphere);
}

function unrolled({ label, x, y, z }, { centre, radius }) {
  const [dx, dy, dz] = [x - centre[0], y - centre[1], z - centre[2]];
  const distance = Math.hypot(dx, dy, dz) || radius;
  const angle = Math.acos(Math.max(-1, Math.min(1, dz / distance))); // 0 at the top, a quarter turn at the rim
  const side = Math.hypot(dx, dy) || 1;
  return { label, x: (dx / side) * (angle / (Math.PI / 2)), y: (dy / side) * (angle / (Math.PI / 2)) };
}

function withinCircle(flat, sphere) {
  let [midX, midY] = [0, 0];
  if (!sphere) {
    const span = (values) => (Math.max(...values) + Math.min(...values)) / 2;
    [midX, midY] = [span(flat.map((each) => each.x)), span(flat.map((each) => each.y))];
  }
  const farthest = Math.max(...flat.map((each) => Math.hypot(each.x - midX, each.y - midY)));
  // a cap that does not reach the rim is not blown up to it
  const reach = sphere ? Math.max(1, farthest) : farthest || 1;
  return flat.map(({ label, x, y }) => ({ label, x: (x - midX) / reach, y: (y - midY) / reach }));
}

/** Centre and radius of the sphere nearest to the points by least squares; null when they lie on none. */
export function fitSphere(points) {
  if (points.length < 8) return null;
  // |p|^2 = 2 c.p + (r^2 - |c|^2): linear in (c, r^2 - |c|^2)
  const sums = Array.from({ length: 4 }, () => new Float64Array(5));
  for (const { x, y, z } of points) {
    const row = [2 * x, 2 * y, 2 * z, 1, x * x + y * y + z * z];
    for (let i = 0; i < 4; i += 1) for (let j = 0; j < 5; j += 1) sums[i][j] += row[i] * row[j];
  }
  const found = solve(sums);
  if (!found) return null;
  const [a, b, c, rest] = found;
  const radius = Math.sqrt(rest + a * a + b * b + c * c);
  const extent = Math.max(...points.map(({ x, y, z }) => Math.hypot(x - a, y - b, z - c)));
  return Number.isFinite(radius) && radius > 0 && extent < 2 * radius ? { centre: [a, b, c], radius } : null;
}

function solve(rows) {
  const largest = Math.max(...rows.map((row, at) => Math.abs(row[at])));
  for (let at = 0; at < 4; at += 1) {
    const pivot = rows.slice(at).reduce((best, row) => (Math.abs(row[at]) > Math.abs(best[at]) ? row : best));
    if (Math.abs(pivot[at]) < 1e-12 * largest) return null;
    rows.splice(rows.indexOf(pivot), 1);
    rows.splice(at, 0, pivot);
    for (let other = 0; other < 4; other += 1) {
      if (other === at) continue;
      const factor = rows[other][at] / pivot[at];
      for (let j = at; j < 5; j += 1) rows[other][j] -= factor * pivot[j];
    }
  }
  return rows.map((row, at) => row[4] / row[at]);
}

/** Where on the head a place of the map is, in words. */
export function placeInWords({ x, y }) {
  const along = y > 0.33 ? "front" : y < -0.33 ? "back" : "middle";
  const across = x > 0.15 ? "right" : x < -0.15 ? "left" : "midline";
  return `${along}, ${across}`;
}
