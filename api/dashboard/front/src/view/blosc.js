// Decodes Blosc, the way chunks are compressed, without WebAssembly: the usual decoder makes code from texts while it runs,
// which the policy of these pages forbids, as it should. A chunk takes a few milliseconds here too.
//
// The format, after c-blosc 1.21 (README_CHUNK_FORMAT.rst): a header of 16 bytes; for each block where it begins; blocks of
// one stream, or of one for each byte of an element; bytes of elements sorted by their place in the element ("shuffle").

import { decompress } from "fzstd";

const HEADER = 16;
const [SHUFFLED, COPIED, BITS_SHUFFLED, NOT_SPLIT] = [1, 2, 4, 16];
const LZ4 = 1;
const ZSTD = 4;
// c-blosc splits a block only if elements and block are of such sizes
const MOST_SPLITS = 16;
const FEWEST_ELEMENTS = 128;

/** The bytes that `packed` holds. Raises an Error for what it does not know and for what is damaged. */
export function decodeBlosc(packed) {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  if (packed.length < HEADER || view.getUint32(12, true) > packed.length) throw new Error("a compressed chunk is cut off");
  const [flags, elementBytes] = [packed[2], packed[3]];
  const [size, blockSize] = [view.getUint32(4, true), view.getUint32(8, true)];
  if (flags & COPIED) return packed.slice(HEADER, HEADER + size);
  if (flags & BITS_SHUFFLED) throw new Error("a chunk is compressed by shuffling bits, which the viewer does not know");
  const out = new Uint8Array(size);
  const isShuffled = Boolean(flags & SHUFFLED) && elementBytes > 1;
  const blocks = blockSize ? Math.ceil(size / blockSize) : 0;
  for (let block = 0; block < blocks; block += 1) {
    const start = block * blockSize;
    const length = Math.min(blockSize, size - start);
    const isSplit = !(flags & NOT_SPLIT) && elementBytes <= MOST_SPLITS && blockSize / elementBytes >= FEWEST_ELEMENTS
      && length === blockSize;
    const bytes = isShuffled ? new Uint8Array(length) : out.subarray(start, start + length);
    unpack(packed, view, view.getUint32(HEADER + 4 * block, true), bytes, isSplit ? elementBytes : 1, flags >> 5);
    if (isShuffled) unshuffle(bytes, out.subarray(start, start + length), elementBytes);
  }
  return out;
}

function unpack(packed, view, at, bytes, streams, method) {
  const length = bytes.length / streams;
  let place = at;
  for (let stream = 0; stream < streams; stream += 1) {
    const taken = view.getUint32(place, true);
    const part = packed.subarray(place + 4, place + 4 + taken);
    if (part.length < taken) throw new Error("a compressed chunk is cut off");
    const target = bytes.subarray(stream * length, (stream + 1) * length);
    if (taken === length) target.set(part); // it could not be made smaller
    else if (method === ZSTD) target.set(decompress(part, new Uint8Array(length)));
    else if (method === LZ4) unpackLz4(part, target);
    else throw new Error(`a chunk is compressed by method ${method}, which the viewer does not know`);
    place += 4 + taken;
  }
}

function unshuffle(sorted, out, elementBytes) {
  const count = Math.floor(sorted.length / elementBytes);
  for (let byte = 0; byte < elementBytes; byte += 1) {
    let from = byte * count;
    for (let to = byte; to < count * elementBytes; to += elementBytes) out[to] = sorted[from++];
  }
  out.set(sorted.subarray(count * elementBytes), count * elementBytes);
}

function unpackLz4(packed, out) {
  let at = 0;
  let end = 0;
  const long = (length) => {
    let more = 255;
    while (more === 255) {
      more = packed[at++];
      length += more;
    }
    return length;
  };
  while (at < packed.length) {
    const token = packed[at++];
    const literals = token >> 4 === 15 ? long(15) : token >> 4;
    out.set(packed.subarray(at, at + literals), end);
    [at, end] = [at + literals, end + literals];
    if (at >= packed.length) return;
    const back = packed[at] | (packed[at + 1] << 8);
    at += 2;
    const length = ((token & 15) === 15 ? long(15) : token & 15) + 4;
    if (!back || back > end || end + length > out.length) throw new Error("a compressed chunk is damaged");
    for (let left = length; left > 0; left -= 1, end += 1) out[end] = out[end - back]; // may overlap itself
  }
}
