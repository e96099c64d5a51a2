from tasks.sources.opening import check_commit, open_source, source_exists
from tasks.sources.protocol import SourceAddress

__all__ = ["SourceAddress", "check_commit", "open_source", "source_exists"]
