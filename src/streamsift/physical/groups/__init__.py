"""TODO"""

from streamsift.physical.groups.alternatives import MAX_NEGATED_EVENTS, group_alternatives
from streamsift.physical.groups.definition_windows import without_definitions
from streamsift.physical.groups.elements import kleene_query
from streamsift.physical.groups.search import group_reasons

__all__ = ["MAX_NEGATED_EVENTS", "group_alternatives", "group_reasons", "kleene_query", "without_definitions"]
