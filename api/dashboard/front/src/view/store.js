// Reads a served store with zarrita, and never shows a mixture of two stores.
//
// A store keeps its address when it is made anew, so a chunk of the new one could be drawn with the scale of the old one.
// The protocol of the docs prevents that: the root `zarr.json` is known from before (its ETag comes with the opening
// document), chunks are read, the root's ETag is asked for again, and only if it is the same the chunks are used.
//
// The opening document is the store's own metadata, read by the server in one piece, and its events. So it takes the place
// of some twenty small requests; the signal itself is read from the store's Zarr objects.

import * as zarr from "zarrita";
import { Blosc } from "./decoding.js";

zarr.registry.set("blosc", () => Blosc);

/** The store is another one than it was when its metadata was read. */
export class Replaced extends Error {}

/** Something that the reader of the page should be told in these words; `isFinal` when trying again would not help. */
export class Trouble extends Error {
  constructor(sentence, { isFinal = false, retryAfterS = undefined } = {}) {
    super(sentence);
    this.isFinal = isFinal;
    this.retryAfterS = retryAfterS;
  }
}

/** The opening document of a store. */
export async function openStore(openingUrl, signal) {
  const answer = await ask(openingUrl, { signal, cache: "no-store" });
  if (answer.ok) return new OpenStore(await answer.json());
  const body = await answer.json().catch(() => ({}));
  const said = body.message && body.message !== "Not found" ? body.message : undefined;
  if (isGone(answer)) {
    const gone = said ?? "There is no such store: the recording was never converted, or what was served of it was withdrawn.";
    throw new Trouble(gone, { isFinal: true });
  }
  throw new Trouble(said ?? `The server answered ${answer.status}.`, { retryAfterS: retryAfter(answer) });
}

async function ask(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The server cannot be reached.");
  }
}

const isGone = ({ status }) => status === 404 || status === 410;

function retryAfter(answer) {
  const seconds = Number(answer.headers.get("Retry-After"));
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 120) : undefined;
}

/** One version of a store: its groups, levels and events, and how to read a chunk of it. */
export class OpenStore {
  constructor(opening) {
    this.version = opening.version;
    this.root = opening.root;
    this.events = opening.events;
    this.groups = opening.groups.map((group) => describeGroup(group));
    const base = new URL(opening.url, document.baseURI);
    this.rootUrl = new URL("zarr.json", base);
    // `v` makes every cache keep the versions apart; `direct` says that no redirect to a bucket is wanted
    base.searchParams.set("v", opening.version.replace(/[^A-Za-z0-9._-]/g, "").slice(0, 64));
    base.searchParams.set("direct", "1");
    this.rootUrl.search = base.search;
    const documents = new Map(opening.groups.flatMap((group) => Object.entries(group.documents)));
    const store = new zarr.FetchStore(base, {
      useSuffixRequest: true,
      fetch: (request) => fetchObject(request, base, documents),
    });
    this.location = zarr.root(zarr.withRangeCoalescing(store));
    this.arrays = new Map();
  }

  group(name) {
    return this.groups.find((group) => group.name === name) ?? this.groups[0];
  }

  /**
   * One chunk of a level: a piece as `envelope.js` draws it.
   *
   * Raises Replaced when the metadata of the store does not fit it, Trouble when it cannot be read.
   */
  async chunk(group, level, number, signal) {
    const path = `${group.name}/${level.path}`;
    if (!this.arrays.has(path)) {
      this.arrays.set(path, zarr.open.v3(this.location.resolve(encodeURIComponent(group.name) + `/${level.path}`), { kind: "array" }));
    }
    const array = await this.arrays.get(path);
    const place = level.number === 0 ? [0, number] : [0, 0, number];
    const { data, stride } = await array.getChunk(place, { signal });
    const first = number * level.chunk;
    return {
      data,
      first,
      end: Math.min(first + level.chunk, level.columns),
      offset: level.number === 0 ? (row) => row * stride[0] : (row, side) => side * stride[0] + row * stride[1],
      bytes: data.byteLength,
    };
  }

  /** Throw Replaced unless the store still is the one that was opened. */
  async check(signal) {
    const answer = await ask(this.rootUrl, { method: "HEAD", cache: "no-store", signal });
    if (isGone(answer)) throw new Replaced();
    if (!answer.ok) throw new Trouble(`The server answered ${answer.status}.`, { retryAfterS: retryAfter(answer) });
    if (answer.headers.get("ETag") !== this.version) throw new Replaced();
  }
}

async function fetchObject(request, base, documents) {
  const inside = decodeURIComponent(new URL(request.url).pathname.slice(base.pathname.length));
  const known = documents.get(inside);
  if (known) return new Response(JSON.stringify(known));
  const answer = await ask(request);
  if (answer.status === 429 || answer.status === 503) {
    throw new Trouble(answer.status === 429 ? "The server limits how much is read." : "The server cannot read the store now.", {
      retryAfterS: retryAfter(answer) ?? 2,
    });
  }
  return answer;
}

/** What the attributes of a channel group say, in the words of this program. */
function describeGroup({ name, documents }) {
  const attributes = documents[`${name}/zarr.json`].attributes;
  const levels = [];
  for (const [path, metadata] of Object.entries(documents)) {
    if (metadata.node_type !== "array") continue;
    const shape = metadata.shape;
    const number = path === `${name}/0/zarr.json` ? 0 : metadata.attributes.level;
    const sharding = metadata.codecs.find((codec) => codec.name === "sharding_indexed");
    const chunkShape = sharding ? sharding.configuration.chunk_shape : metadata.chunk_grid.configuration.chunk_shape;
    levels.push({
      number,
      path: number === 0 ? "0" : `view/${number}`,
      factor: number === 0 ? 1 : metadata.attributes.downsample_factor,
      columns: shape[shape.length - 1],
      chunk: chunkShape[chunkShape.length - 1],
    });
  }
  levels.sort((a, b) => a.number - b.number);
  const channels = attributes.channels.map((channel) => ({
    row: channel.row_index,
    label: String(channel.label),
    type: String(channel.channel_type ?? attributes.modality ?? ""),
    unit: String(channel.unit ?? ""),
    scale: channel.scale,
    offset: channel.offset,
    isUsable: channel.usable_for_inference !== false,
    filled: channel.nonfinite_samples ?? 0,
  }));
  return {
    name,
    modality: attributes.modality,
    rateHz: attributes.rate,
    sourceRateHz: attributes.original_rate,
    samples: attributes.n_samples,
    durationS: attributes.n_samples / attributes.rate,
    channels: channels.sort((a, b) => a.row - b.row),
    levels,
  };
}
