// Stands in for decoders that zarrita knows and the viewer is built without; signals are compressed with Blosc (blosc.js).

export default {
  fromConfig() {
    throw new Error("it is compressed by a method that the viewer does not know");
  },
};
