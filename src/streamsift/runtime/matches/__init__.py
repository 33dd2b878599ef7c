"""TODO"""

from streamsift.runtime.matches.filters import Stage, passing
from streamsift.runtime.matches.group_matches import GroupMatches
from streamsift.runtime.matches.group_output import group_batches
from streamsift.runtime.matches.group_values import GroupValues
from streamsift.runtime.matches.output import first_and_last, known_columns, match_schema, most_matches, result_batches
from streamsift.runtime.matches.scores import match_columns, merged_scores, objective_score, objective_values, scores

__all__ = [
    "GroupMatches",
    "GroupValues",
    "Stage",
    "first_and_last",
    "group_batches",
    "known_columns",
    "match_columns",
    "match_schema",
    "merged_scores",
    "most_matches",
    "objective_score",
    "objective_values",
    "passing",
    "result_batches",
    "scores",
]
