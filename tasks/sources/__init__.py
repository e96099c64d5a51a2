from tasks.sources.opening import open_source
from tasks.sources.protocol import SourceAddress

__all__ = ["SourceAddress", "open_source"]
