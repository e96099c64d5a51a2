"""Events of a recording: one parse, used for the store's events group and for events.parquet."""
