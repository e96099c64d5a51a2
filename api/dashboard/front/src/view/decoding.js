// Chunks are decoded in a worker where there is one, and here where there is none.

import { decodeBlosc } from "./blosc.js";

const waiting = new Map(); // number -> {packed, resolve, reject}
let worker;
let last = 0;

/** Decode in a worker from now on; `address` is that of viewer_decoder.js. */
export function useDecoder(address) {
  worker = new Worker(address, { type: "module" });
  worker.onmessage = ({ data: { number, bytes, said } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (bytes) resolve(bytes);
    else reject(new Error(said));
  };
  worker.onerror = () => { // it could not be started
    worker = undefined;
    for (const { packed, resolve, reject } of waiting.values()) here(packed).then(resolve, reject);
    waiting.clear();
  };
}

async function here(packed) {
  return decodeBlosc(packed);
}

function decode(packed) {
  if (!worker) return here(packed);
  return new Promise((resolve, reject) => {
    last += 1;
    waiting.set(last, { packed, resolve, reject });
    worker.postMessage({ number: last, packed });
  });
}

/** The decoder as zarrita takes one. */
export const Blosc = { fromConfig: () => ({ kind: "bytes_to_bytes", decode }) };
