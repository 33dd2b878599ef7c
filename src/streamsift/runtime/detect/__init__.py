"""TODO"""

from streamsift.runtime.detect.analyze import analyze
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.detect.run import detect, group_matches, match_rows
from streamsift.runtime.detect.statistics import Measure

__all__ = ["Measure", "Relations", "analyze", "detect", "group_matches", "match_rows"]
