// Runs beside the page, as a worker, so that decoding a chunk never holds up a frame.

import { decodeBlosc } from "./view/blosc.js";

onmessage = ({ data: { number, packed } }) => {
  try {
    const bytes = decodeBlosc(packed);
    postMessage({ number, bytes }, [bytes.buffer]);
  } catch (error) {
    postMessage({ number, said: error.message });
  }
};
