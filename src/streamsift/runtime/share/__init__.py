"""TODO"""

from streamsift.runtime.share.run import Report, execute_many

__all__ = ["Report", "execute_many"]
