from tasks.sources.opening import open_source

__all__ = ["open_source"]
