"""Run the demo: queries on generated data with Spark, each with its plan, first rows and throughput."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

from streamsift.api import query
from streamsift.command import demo_data
from streamsift.command.jobs import best_first, nouns
from streamsift.command.progress import progress
from streamsift.command.session import start_spark
from streamsift.language.highlight import QueryLexer
from streamsift.view.match_columns import MatchRoles, text_columns
from streamsift.view.tables import how_many, print_table, wrapped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """A query, its data set and what it demonstrates."""

    title: str
    data: str
    type: str | None
    text: str
    why: str


WARM_ROWS = 10_000
SAMPLE_ROWS = 2_000

DATA = {generate.__name__: generate for generate in (demo_data.hospital, demo_data.purchases, demo_data.ticks)}

DEMO_QUERIES = (
    DemoQuery(
        "Instruments washed below 55 °C, then used in surgery",
        "hospital",
        "kind",
        "PATTERN SEQ(Recycle r, Washing w, Operating o)\n"
        "WHERE [id] AND o.ins_type = 'surgery' AND w.temperature < 55\n"
        "WITHIN 2 hours\n"
        "RETURN r.id AS id, r.ts AS recycled, w.temperature AS celsius,\n"
        "       o.ts AS operated, o.room AS room",
        "[id]: all three events are of the same instrument",
    ),
    DemoQuery(
        "Instruments not sharpened, disinfected and checked between washing and surgery",
        "hospital",
        "kind",
        "PATTERN SEQ(Recycle r, Washing w,\n"
        "            !SEQ(Sharpening s, Disinfection d, Checking c), Operating o)\n"
        "WHERE [id] AND o.ins_type = 'surgery'\n"
        "WITHIN 3 hours\n"
        "RETURN r.id AS id, w.ts AS washed, o.ts AS operated,\n"
        "       o.ts - w.ts AS after, o.room AS room",
        "negation: the first hit rejects a match; no negated sequence is built",
    ),
    DemoQuery(
        "Two small payments test a card, then a large one follows in another city",
        "purchases",
        None,
        "PATTERN SEQ(Small a, Small b, Large c)\n"
        "WITH Small = (amount <= 5), Large = (amount >= 800)\n"
        "WHERE [ccid] AND a.city != c.city\n"
        "WITHIN 15 min\n"
        "RETURN a.ccid AS card, a.ts AS started, c.amount AS taken,\n"
        "       c.city AS city, c.ts - a.ts AS after",
        "classes defined by predicates; 64-bit integers and decimals are exact",
    ),
    DemoQuery(
        "A dip in the price of a stock within 12 of its trades",
        "ticks",
        None,
        "PATTERN SEQ(ANY before, ANY dip, ANY after)\n"
        "PARTITION BY symbol\n"
        "WHERE dip.price < before.price * 0.998 AND after.price > before.price\n"
        "  AND dip.volume >= 1000\n"
        "WITHIN 12 EVENTS\n"
        "RETURN before.symbol AS symbol, before.price AS before, dip.price AS dip,\n"
        "       after.price AS after, dip.ts AS ts",
        "a count window: 12 rows of the same symbol",
    ),
    DemoQuery(
        "Three stocks in a row within half a second",
        "ticks",
        "symbol",
        "PATTERN SEQ(DELL d, IPIX i, AMAT m)\n"
        "WHERE d.volume > 800 AND ABS(d.price - i.price) < ABS(i.price - m.price)\n"
        "WITHIN 500 ms",
        "no RETURN: a match contains whole events",
    ),
    DemoQuery(
        "How often three small trades precede a large one, per stock and minute",
        "ticks",
        None,
        "PATTERN SEQ(Small a, Small b, Small c, Large d)\n"
        "WITH Small = (volume <= 300), Large = (volume >= 2000)\n"
        "GROUP BY symbol\n"
        "AGG COUNT AS times, SUM(d.volume) AS volume, MAX(d.price) AS highest\n"
        "WITHIN 1 min UPDATE 1 min",
        "aggregation: counts and sums matches without building them",
    ),
    DemoQuery(
        "The three most profitable trades of each minute, in hindsight",
        "ticks",
        None,
        "PATTERN SEQ(ANY buy, ANY sell)\n"
        "WHERE [symbol]\n"
        "PREF MAX[sell.price - buy.price]\n"
        "WITHIN 1 min UPDATE 1 min\n"
        "RETURN TOP 3 buy.symbol AS symbol, buy.price AS paid, sell.price AS got,\n"
        "       sell.ts - buy.ts AS after",
        "ranking: finds the best matches without building the others",
    ),
)


def run_demo(console: Console, rows: int, seed: int, master: str | None = None) -> None:
    spark = start_spark(console, master, "streamsift demo")
    with progress(console, "starting Python workers"):
        # Otherwise the first query is timed with the start of workers and, on a new machine, with compiling kernels.
        events = spark.range(WARM_ROWS).selectExpr("id AS ts", "id % 100 AS key")
        query("PATTERN SEQ(ANY a, ANY b) WHERE [key] WITHIN 200").run(events, time="ts").count()
    try:
        with tempfile.TemporaryDirectory(prefix="streamsift-demo-") as folder:
            frames = {name: _generate(console, spark, Path(folder), name, rows, seed) for name in DATA}
            _summary(console, rows, [_run_query(console, spark, frames[demo.data], demo) for demo in DEMO_QUERIES])
    finally:
        spark.stop()


def save_data(folder: Path, rows: int, seed: int) -> list[Path]:
    """Write the data sets as CSV files."""
    folder.mkdir()
    paths = []
    for name, generate in DATA.items():
        paths.append(folder / f"{name}.csv")
        pa.csv.write_csv(generate(rows, seed), paths[-1])
    return paths


def _generate(console: Console, spark: SparkSession, folder: Path, name: str, rows: int, seed: int) -> DataFrame:
    with progress(console, f"generating {rows:,} events: {name}"):
        table = DATA[name](rows, seed)
        path = folder / f"{name}.parquet"
        pa.parquet.write_table(table, path)
    columns = ", ".join(table.column_names)
    console.print(f"[bold]{name}[/]: {table.num_rows:,} events, columns {columns}", highlight=False)
    return spark.read.parquet(str(path))


def _run_query(console: Console, spark: SparkSession, events: DataFrame, demo: DemoQuery) -> tuple[str, int, float]:
    """Show a query, its plan and its first rows; return its title, its number of rows and its seconds."""
    from streamsift.spark.files import task_counter

    parsed = query(demo.text)
    binding: dict[str, Any] = {"time": "ts", "type": demo.type}
    console.rule(f"[bold]{demo.title}[/]", align="left")
    text = Syntax(demo.text, QueryLexer(), background_color="default", word_wrap=True)
    why = escape(demo.why)
    console.print(Panel(text, title=demo.data, title_align="left", subtitle=why, subtitle_align="left"))
    plan = parsed.explain(events, **binding)
    physical = plan[plan.index("Physical") :]  # the sections before it repeat the query
    console.print(wrapped(physical, console.width), highlight=False, markup=False, style="dim")
    result = parsed.run(events, **binding).persist()  # computed once, for count and table
    with progress(console, "compiling the plan on a sample", task_counter(spark)):
        parsed.run(events.limit(SAMPLE_ROWS), **binding).count()
    started = time.perf_counter()
    with progress(console, "finding matches", task_counter(spark)):
        total = result.count()
        seconds = time.perf_counter() - started
        head = best_first(parsed, result).limit(5).toArrow()
    result.unpersist()
    columns = text_columns(head, MatchRoles(parsed.sketch, "ts", demo.type))
    print_table(columns, how_many(head.num_rows, total, *nouns(parsed)), console)
    return demo.title, total, seconds


def _summary(console: Console, events: int, speeds: list[tuple[str, int, float]]) -> None:
    table = Table(
        title="Time on Spark to read Parquet files, find matches and count the rows",
        title_justify="left",
        caption=f"each query first ran on {SAMPLE_ROWS:,} events, so that Spark has compiled its plan",
        caption_justify="left",
    )
    for heading in ("query", "events", "rows", "seconds", "events/s"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for title, rows, seconds in speeds:
        table.add_row(title, f"{events:,}", f"{rows:,}", f"{seconds:.2f}", f"{events / seconds:,.0f}")
    console.print(table)
