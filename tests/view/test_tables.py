"""Text tables: the columns that matter, on one line where they fit, and never a broken header."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO

import pyarrow as pa
import pytest
from rich.console import Console

import streamsift as ss
from streamsift.view.match_columns import MatchRoles, text_columns
from streamsift.view.tables import print_table

DAY = datetime(2024, 5, 1, 4, 18, 29, 101_000)
EVENTS = pa.table(
    {
        "ts": [DAY, DAY + timedelta(minutes=20), DAY + timedelta(hours=19, minutes=30), DAY + timedelta(hours=20)],
        "kind": ["Wash", "Use", "Wash", "Use"],
        "id": [7, 7, 8, 8],
        "room": ["washing-1", "operating-2", "washing-2", "operating-1"],
        "celsius": [61.5, 20.25, 59.0, 21.0],
        "owner": ["ward"] * 4,
    }
)


def table(text: str, width: int, *, terminal: bool = True) -> list[str]:
    query = ss.query(text)
    rows = query.run_local(EVENTS, time="ts", type="kind").sort_by("match_start" if "RETURN" not in text else "id")
    console = Console(file=StringIO(), width=width, force_terminal=terminal, color_system=None)
    print_table(text_columns(rows, MatchRoles(query.sketch, "ts", "kind")), f"{rows.num_rows} matches", console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


PAIRS = "PATTERN SEQ(Wash w, Use u) WHERE [id] AND w.celsius > u.celsius"


def test_a_match_is_one_line_of_times_and_mentioned_attributes() -> None:
    assert table(PAIRS, 80) == [
        "id  w.ts                     w.celsius  u.ts                     u.celsius",
        "7   2024-05-01 04:18:29.101  61.5       04:38:29.101             20.25",
        "8   2024-05-01 23:48:29.101  59         2024-05-02 00:18:29.101  21",
        "2 matches",
        "not shown: owner, w.room, u.room (--format json shows all columns)",
    ]


def test_without_a_terminal_every_attribute_is_shown() -> None:
    header, *_, caption = table(PAIRS, 80, terminal=False)
    assert header.split() == ["id", "owner", "w.ts", "w.room", "w.celsius", "u.ts", "u.room", "u.celsius"]
    assert caption == "2 matches"


def test_groups_show_their_size_and_their_ends() -> None:
    assert table("PATTERN SEQ(Wash w, ANY+ g) WHERE g.celsius > 5", 100)[:2] == [
        "w.ts                     count(g)  g.ts                                    g.kind     g.celsius",
        "2024-05-01 04:18:29.101  3         04:38:29.101 … 2024-05-02 00:18:29.101  Use … Use  20.25 … 21",
    ]


def test_returned_columns_stay_and_no_header_is_broken() -> None:
    text = "PATTERN SEQ(Wash w, Use u) WHERE [id] RETURN w.id AS id, w.ts AS washed_in_the_morning, u.ts AS used"
    assert table(text, 56) == [
        "id  washed_in_the_morning    used",
        "7   2024-05-01 04:18:29.101  2024-05-01 04:38:29.101",
        "8   2024-05-01 23:48:29.101  2024-05-02 00:18:29.101",
        "2 matches",
    ]
    assert table(text, 42)[:3] == [
        "id  washed_in_the_morning  used",
        "7   2024-05-01             2024-05-01",
        "    04:18:29.101           04:38:29.101",
    ]
    narrow = table(text, 30)
    assert (narrow[0], narrow[-2].split(" (")[0]) == ("id  washed_in_the_morning", "not shown: used")


@pytest.mark.parametrize("width", [20, 40, 79, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, table("PATTERN SEQ(Wash w, Use u, ANY* x)", width))) <= width
