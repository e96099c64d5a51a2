"""The source's own signals, a window at a time: one file a format, none of which the converter uses."""
