"""VneuroTK's HDF5 recordings: what stands on disk, read and written by h5py alone. Both doors, reading and export, build on it."""
