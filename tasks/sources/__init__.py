from tasks.sources.opening import open_source, source_exists
from tasks.sources.protocol import SourceAddress

__all__ = ["SourceAddress", "open_source", "source_exists"]
