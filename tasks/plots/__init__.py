"""Plots of what was measured: pure values, drawn as files by matplotlib or as SVG inside a page."""
