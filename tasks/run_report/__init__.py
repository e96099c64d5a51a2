"""The report of one run: one HTML file that needs nothing but itself."""
