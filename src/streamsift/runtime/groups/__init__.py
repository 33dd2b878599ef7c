"""TODO"""

from streamsift.runtime.groups.search import GroupSearch

__all__ = ["GroupSearch"]
