"""Run SQL statements with MATCH_RECOGNIZE on Spark: each clause becomes a view, and the rest is Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from streamsift.api import arguments
from streamsift.api.arguments import is_spark
from streamsift.api.row_query import RowQuery, SkipErrorPolicy
from streamsift.errors import LocatedError, UnsupportedQuery
from streamsift.language.row_match import parse_rows
from streamsift.language.row_match.statement import Clause, SqlToken, common_tables, first_clause, text_of, tokens_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sql(
    statement: str,
    spark: SparkSession,
    *,
    args: Any = None,
    on_skip_error: SkipErrorPolicy = "fail",
    max_partition_bytes: int | str | None = None,
    **names: Any,
) -> DataFrame:
    """Run an SQL statement of Spark that may contain MATCH_RECOGNIZE, any number of times.

    Each `relation MATCH_RECOGNIZE (…) [AS m [(columns)]]` may stand wherever a table may: in FROM, JOIN, subqueries and
    WITH. Its relation is a table, a view, a bracketed query or the name of a DataFrame given as a keyword.

    Args:
        statement: SQL text.
        spark: Spark session.
        args: Values of the statement's parameters, as in `spark.sql`; not inside MATCH_RECOGNIZE.
        on_skip_error: "fail" (default) or "next", as in `Query.run` of a clause.
        max_partition_bytes: Largest size of one partition in a worker. Default: a share of the worker's memory.
        **names: DataFrames by the name that the statement uses for them, `t` or `{t}`; other values as in `spark.sql`.

    Returns:
        A DataFrame; it is lazy.

    Raises:
        QueryError: A clause does not parse or does not fit the columns.
        UnsupportedQuery: This version cannot evaluate a clause.

    Example:
        >>> sql('''SELECT m.symbol, m.n FROM ticks
        ...     MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n
        ...         PATTERN (UP+) DEFINE UP AS price > PREV(price)) AS m
        ...     WHERE m.n > 3''', spark, ticks=df)  # doctest: +SKIP
    """
    arguments.check_spark("sql()")
    options = {"on_skip_error": on_skip_error, "max_partition_bytes": max_partition_bytes}
    return _Statement(statement, spark, args, options, names).run()


class _Statement:
    def __init__(self, text: str, spark: Any, args: Any, options: dict[str, Any], names: dict[str, Any]) -> None:
        self.text, self.spark, self.args, self.options = text, spark, args, options
        self.views: list[str] = []
        self.tokens = tokens_of(text)
        frames = {name: value for name, value in names.items() if is_spark(value) and hasattr(value, "mapInArrow")}
        self.values = {name: value for name, value in names.items() if name not in frames}
        self.frames = {name: self._view(frame) for name, frame in frames.items()}

    def run(self) -> DataFrame:
        try:
            self._name_frames()
            while (clause := first_clause(self.tokens, self.text)) is not None:
                self._replace(clause)
            return self._sql(text_of(self.tokens))
        finally:
            self._drop_views()

    def _view(self, frame: Any) -> str:
        name = f"streamsift_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self.views.append(name)
        return name

    def _drop_views(self) -> None:
        # Spark Connect analyzes a statement again when it runs, so there the views must stay.
        if "connect" not in type(self.spark).__module__:
            for name in self.views:
                self.spark.catalog.dropTempView(name)

    def _sql(self, text: str) -> DataFrame:
        result: DataFrame
        if self.args is None and not self.values:
            result = self.spark.sql(text)
        else:
            result = self.spark.sql(text, self.args, **self.values)
        return result

    def _name_frames(self) -> None:
        """Let the statement use the names of DataFrames: as parameters, or as tables of a WITH around it."""
        used: list[str] = []
        for index, token in enumerate(self.tokens):
            name = token.text.strip("{}`")
            if name in self.frames and token.kind == "parameter":
                self.tokens[index] = SqlToken("word", self.frames[name], token.start, token.end)
            elif name in self.frames and token.is_name and name not in used:
                used.append(name)
        if not used:
            return
        first = self.tokens[0].upper
        if first not in ("SELECT", "WITH", "FROM", "VALUES", "("):
            hint = f"write {{{used[0]}}} instead of {used[0]}."
            raise UnsupportedQuery(f"names of DataFrames cannot be used in {first} statements", hint=hint)
        tables = ", ".join(f"`{name}` AS (SELECT * FROM {self.frames[name]})" for name in used)
        words = f"WITH {tables}{',' if first == 'WITH' else ''}"
        prefix = tokens_of(words)
        numbered = zip(range(len(prefix), 0, -1), prefix, strict=True)
        # Tokens that do not touch are printed with a space between them.
        spaced = [SqlToken(t.kind, t.text, -2 * n, 1 - 2 * n) for n, t in numbered]
        self.tokens = [*spaced, *self.tokens[first == "WITH" :]]

    def _replace(self, clause: Clause) -> None:
        """Run a clause, and put a view of its result in its place."""
        tokens = self.tokens
        matched = self._matched(clause)
        if clause.columns:
            matched = matched.toDF(*clause.columns)
        alias = f" AS `{clause.alias.replace('`', '``')}`" if clause.alias else ""
        start, end = tokens[clause.start].start, tokens[clause.end - 1].end
        view = SqlToken("word", self._view(matched) + alias, start, end)
        self.tokens = [*tokens[: clause.start], view, *tokens[clause.end :]]

    def _matched(self, clause: Clause) -> DataFrame:
        tokens = self.tokens
        relation = self._relation(clause)
        begin, end = tokens[clause.clause[0]].start, tokens[clause.clause[1] - 1].end
        # Spaces around the clause keep its places in the statement, for errors.
        blank = "".join(c if begin <= n < end or c == "\n" else " " for n, c in enumerate(self.text))
        try:
            return RowQuery(parse_rows(blank)).run(relation, **self.options)
        except LocatedError as error:
            raise type(error)(error.message, self.text if error.text else "", error.span, error.hint) from None

    def _relation(self, clause: Clause) -> DataFrame:
        tokens = self.tokens
        text = f"SELECT * FROM {text_of(tokens[slice(*clause.relation)])}"
        visible = [
            [table for table in tables if table.visible[0] <= clause.start < table.visible[1]]
            for tables in common_tables(tokens, self.text)
        ]
        for tables in reversed([each for each in visible if each]):
            defined = ", ".join(text_of(tokens[slice(*table.tokens)]) for table in tables)
            text = f"WITH {defined} SELECT * FROM ({text})" if " WITH " in f" {text}" else f"WITH {defined} {text}"
        try:
            return self._sql(text)
        except Exception as error:  # of pyspark, which only `spark` imports
            if "UNRESOLVED_COLUMN" not in str(error):
                raise
            hint = "a clause in a correlated subquery is not supported."
            raise UnsupportedQuery(
                f"the relation of MATCH_RECOGNIZE cannot be evaluated alone: {str(error).splitlines()[0]}", hint=hint
            ) from error
