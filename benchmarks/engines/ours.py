"""Run a workload on Streamsift without Spark: from an Arrow table to an Arrow table, on one thread."""

from __future__ import annotations

import streamsift as ss
from benchmarks.engines.question import Question
from benchmarks.harness.answers import answer_of_table
from benchmarks.harness.experiment import Contender, Side, in_process


def contender(question: Question) -> Contender:
    """Run the workload on Streamsift; the time includes parsing, planning, sorting and building Arrow rows."""
    return in_process(
        "streamsift",
        Side.OURS,
        lambda: ss.query(question.query).run_local(question.events, time="t", type="kind"),
        lambda result: answer_of_table(result, question.columns),
    )
