// What is looked at, as the part of the address behind `#`, so that a view can be kept and sent to somebody.
//
// Channels are named by their rows, because labels may be long or hold anything.

/** The state that an address tells; what it does not tell, or tells wrongly, is left out. */
export function parseState(hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const state = {};
  const number = (name, fits) => {
    const value = told.has(name) && told.get(name) !== "" ? Number(told.get(name)) : NaN;
    return Number.isFinite(value) && fits(value) ? value : undefined;
  };
  const set = (name, value) => {
    if (value !== undefined) state[name] = value;
  };
  set("startS", number("t", (value) => value >= 0));
  set("spanS", number("w", (value) => value > 0));
  set("perPage", number("n", (value) => Number.isInteger(value) && value >= 0 && value <= 100000));
  set("top", number("top", (value) => Number.isInteger(value) && value >= 0 && value <= 100000));
  if (told.get("g")) set("groupName", told.get("g"));
  if (told.has("ch")) set("rows", parseRows(told.get("ch")));
  if (told.get("dc") === "1") set("keepsOffset", true);
  if (told.get("clock") === "1") set("clock", true);
  if (told.get("ev") === "0") set("hidesEvents", true);
  const scales = {};
  for (const each of told.getAll("y")) {
    const at = each.lastIndexOf(":");
    const value = Number(each.slice(at + 1));
    if (at > 0 && Number.isFinite(value) && value > 0) scales[each.slice(0, at)] = value;
  }
  if (Object.keys(scales).length) set("scales", scales);
  return state;
}

/** The address of a state, beginning with `#`. What is as it would be anyhow is left out. */
export function formatState(state) {
  const told = new URLSearchParams();
  if (state.groupName) told.set("g", state.groupName);
  told.set("t", shortest(state.startS));
  told.set("w", shortest(state.spanS));
  if (state.rows) told.set("ch", formatRows(state.rows));
  if (state.perPage !== undefined) told.set("n", String(state.perPage));
  if (state.top) told.set("top", String(state.top));
  for (const [type, value] of Object.entries(state.scales ?? {})) told.append("y", `${type}:${shortest(value)}`);
  if (state.keepsOffset) told.set("dc", "1");
  if (state.clock) told.set("clock", "1");
  if (state.hidesEvents) told.set("ev", "0");
  return `#${told}`;
}

const shortest = (value) => String(Number(value.toPrecision(9)));

/** `0-3,7` for [0, 1, 2, 3, 7]. */
export function formatRows(rows) {
  const sorted = [...new Set(rows)].sort((a, b) => a - b);
  const parts = [];
  for (let at = 0; at < sorted.length; at += 1) {
    const first = sorted[at];
    while (sorted[at + 1] === sorted[at] + 1) at += 1;
    parts.push(first === sorted[at] ? `${first}` : `${first}-${sorted[at]}`);
  }
  return parts.join(",");
}

/** The rows of `0-3,7`; undefined when it is no such text. */
export function parseRows(text) {
  if (text === "") return [];
  const rows = [];
  for (const part of text.split(",")) {
    const found = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    if (!found) return undefined;
    const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
    if (last < first || last - first + rows.length > 100000) return undefined;
    for (let row = first; row <= last; row += 1) rows.push(row);
  }
  return rows;
}
