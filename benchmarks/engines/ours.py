"""A question in, Streamsift's contender without Spark out: an Arrow table in, an Arrow table out, one thread."""

from __future__ import annotations

import streamsift as ss
from benchmarks.engines.question import Question
from benchmarks.harness.answers import answer_of_table
from benchmarks.harness.experiment import Contender, Side, in_process


def contender(question: Question) -> Contender:
    """Everything is timed: reading the text, planning, ordering the events, the rows as Arrow columns."""
    return in_process(
        "streamsift",
        Side.OURS,
        lambda: ss.query(question.query).run_local(question.events, time="t", type="kind"),
        lambda result: answer_of_table(result, question.columns),
    )
