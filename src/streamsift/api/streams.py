"""Run queries on a stream of events in this process: open a stream, push events, save and resume it."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pyarrow as pa

from streamsift import logical, physical
from streamsift.api import arguments
from streamsift.api.arguments import Roles, as_table, memory_bytes
from streamsift.errors import BadInputError, StreamsiftError, nearest
from streamsift.view.plots import signed

if TYPE_CHECKING:
    from streamsift.runtime.state import SavedChunks

FORMAT = 1  # of the values that `save` writes besides the state of the engine
Rows = TypeVar("Rows", pa.Table, dict[str, pa.Table])


@dataclass(frozen=True, slots=True)
class Opening:
    """What a stream was opened with; a saved stream contains it."""

    queries: dict[str, str]  # texts by name
    roles: Roles
    lateness: str | float | None
    bad_rows: str
    choices: physical.PlannerKeywords
    is_many: bool  # results are a dict by query name


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """What a stream in process has done since it was opened, resumed streams since they were first opened."""

    pushes: int
    rows: int  # pushed, late and bad rows included
    matches: int  # result rows
    late: int  # events before the watermark, dropped
    bad_rows: int  # rows without a usable time or order, dropped
    state_rows: int
    state_bytes: int
    latency_ms: float | None  # the mean of a push; None before the first one
    watermark: Any  # the time before which events are late; None before the first event


class Stream(Generic[Rows]):
    """A stream of events in this process, opened by `Query.open`, `open_many` or `resume`.

    Results are Arrow tables; with several queries, dicts of tables by query name. Call one method at a time: a call
    during another one, from a different thread, raises StreamsiftError.

    Example:
        >>> import pyarrow as pa
        >>> import streamsift as ss
        >>> q = ss.query("PATTERN SEQ(A a, B b) WITHIN 10 RETURN a.t AS start, b.t AS end")
        >>> stream = q.open(pa.schema({"t": pa.int64(), "kind": pa.string()}), time="t", type="kind")
        >>> stream.push([{"t": 1, "kind": "A"}]).to_pylist()
        []
        >>> stream.push([{"t": 5, "kind": "B"}]).to_pylist()
        [{'start': 1, 'end': 5}]
        >>> stream.finish().to_pylist()
        []
    """

    def __init__(self, opening: Opening, schema: pa.Schema, plans: Mapping[str, physical.Plan], memory: int) -> None:
        from streamsift import runtime
        from streamsift.runtime.state import SavedChunks
        from streamsift.runtime.stream import ProcessStream

        self._opening, self._input = opening, schema
        query = next(iter(plans.values())).query
        arguments.check_policy(opening.bad_rows)
        lateness = logical.lateness_of(opening.lateness, query.binding)
        self._batches = ProcessStream(plans, lateness, opening.bad_rows == "drop", memory)
        fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
        self._read = pa.schema(fields.values())
        self._empty = {
            name: signed(runtime.output_schema(plan.query), opening.queries[name], opening.roles.time).empty_table()
            for name, plan in plans.items()
        }
        self._chunks, self._offsets = SavedChunks(), cast(Any, None)
        self._lock, self._running, self._ended = threading.Lock(), "", ""

    # --- events ---
    def push(self, events: Any) -> Rows:
        """Add events and return the rows that became final.

        A push is one micro-batch. Events before the watermark are late: they are dropped and counted. Events of one
        push are never late to one another, and may be in any order. The watermark then moves to the greatest time so
        far minus `lateness`.

        Args:
            events: pyarrow Table, RecordBatch or RecordBatchReader, pandas DataFrame, any object that exports an Arrow
                stream, such as a Polars DataFrame, or a list of dicts, one per row. A dict may omit columns that are
                null. Columns that the query does not read are ignored.

        Returns:
            A pyarrow Table with the rows that became final; of several queries, a dict of tables by query name.

        Raises:
            BadInputError: Rows have no usable time or order and `bad_rows` is "fail", or a column is missing or does
                not fit the schema. The stream is as before: push the corrected rows.
            MemoryLimitExceeded: The state and the new events need more memory than `memory_limit`.
            StreamsiftError: The stream is finished, has failed or is in use by another thread.
        """
        with self._call("push()"):
            begin = perf_counter()
            table = as_events(events, self._read)
            rows = self._step(lambda: self._batches.push(table))
            self._batches.counts.seconds += perf_counter() - begin
            return rows

    def advance(self, time: Any) -> Rows:
        """Move the watermark to a time, and return the rows that became final.

        Later events before that time are late; events at that very time are not. A time before the watermark changes
        nothing. Call `advance` if the source is idle, so that matches that wait for the end of a window are returned.

        Args:
            time: The new watermark: a datetime, a date or ISO-8601 text for a calendar column, a number for a column of
                numbers. `lateness` is not subtracted.

        Returns:
            The rows that became final, as `push` returns them.

        Raises:
            QueryError: The time does not fit the time column.
            StreamsiftError: The stream is finished, has failed or is in use by another thread.
        """
        from streamsift.runtime.stream import moment_of

        with self._call("advance()"):
            moment = moment_of(time, self._batches.query)
            return self._step(lambda: self._batches.advance(moment))

    def finish(self) -> Rows:
        """End the stream and return the remaining rows, as if the watermark moved to the end of time.

        Returns:
            The remaining rows, as `push` returns them. Together with the rows of all earlier calls, they are the rows
            that `run_local` returns for the same events without the late ones.

        Raises:
            StreamsiftError: The stream is finished, has failed or is in use by another thread.
        """
        with self._call("finish()"):
            rows = self._step(self._batches.finish)
            self._ended = "the stream is finished"
            return rows

    # --- state ---
    def save(self, path: str | os.PathLike[str], offsets: Any = None) -> None:
        """Save the stream in a file, from which `resume` continues it.

        The file is replaced atomically: after a crash it has the old state or the new one. Save the positions of a
        source in `offsets`, so that the state and the positions always fit each other.

        Args:
            path: File to write or replace. Its directory must exist.
            offsets: Any JSON value, such as the next offset of each partition. Default: none.

        Raises:
            TypeError: `offsets` is no JSON value.
            StreamsiftError: The stream is finished, has failed or is in use by another thread.
        """
        from streamsift.runtime.state import write_state

        with self._call("save()"):
            check_offsets(offsets)
            head = self._chunks.update(self._batches.changes())
            opening = {**asdict(self._opening), "roles": self._opening.roles._asdict()}
            schema = base64.b64encode(self._input.serialize().to_pybytes()).decode()
            values = {"format": FORMAT, "opening": opening, "schema": schema, "offsets": offsets}
            write_state(Path(path), {**values, "stream": self._batches.values()}, head, self._chunks)
            self._offsets = offsets

    @property
    def offsets(self) -> Any:
        """The offsets of the last save, or of the file that the stream was resumed from; None if there are none."""
        return self._offsets

    @property
    def watermark(self) -> Any:
        """The time before which events are late, as a Python value; None before the first event."""
        return self._batches.horizon()

    @property
    def metrics(self) -> StreamMetrics:
        """Counts of pushes, rows, matches, late events and bad rows, the size of the state, and the mean latency."""
        batches, counts = self._batches, self._batches.counts
        return StreamMetrics(
            pushes=counts.pushes,
            rows=counts.rows,
            matches=counts.matches,
            late=batches.late,
            bad_rows=counts.bad_rows,
            state_rows=batches.state_rows(),
            state_bytes=batches.state_bytes(),
            latency_ms=1000 * counts.seconds / counts.pushes if counts.pushes else None,
            watermark=batches.horizon(),
        )

    def _load(self, values: dict[str, Any], head: bytes, chunks: SavedChunks) -> None:
        self._batches.load(values["stream"], head, chunks.items())
        self._chunks, self._offsets = chunks, values["offsets"]

    # --- one call ---
    @contextmanager
    def _call(self, name: str) -> Iterator[None]:
        """Raise if the stream cannot be used, or is in use by another thread."""
        if not self._lock.acquire(blocking=False):
            raise StreamsiftError(
                f"{name} was called during {self._running or 'another call'} of the same stream\n"
                "Hint: use a stream from one thread or task at a time, or protect it with a lock."
            )
        try:
            if self._ended:
                hint = "open a new stream, or resume one that was saved with ss.resume()."
                raise StreamsiftError(f"{name} is not possible: {self._ended}\nHint: {hint}")
            self._running = name
            yield
        finally:
            self._running = ""
            self._lock.release()

    def _step(self, step: Callable[[], dict[str, pa.Table]]) -> Rows:
        try:
            final = step()
        except BaseException as error:
            if not self._batches.is_consistent:
                self._ended = f"it failed with {type(error).__name__} in the middle of {self._running}"
            raise
        rows = {name: self._result(name, final.get(name)) for name in self._empty}
        return cast(Rows, rows if self._opening.is_many else next(iter(rows.values())))

    def _result(self, name: str, rows: pa.Table | None) -> pa.Table:
        empty = self._empty[name]
        return rows.replace_schema_metadata(empty.schema.metadata) if rows is not None and rows.num_rows else empty


# --- opening and resuming --------------------------------------------------------------------------------------------


def open_stream(opening: Opening, schema: Any, memory_limit: int | str | None) -> Stream[Any]:
    """Open a stream for events of a schema."""
    from streamsift.api.query import query

    if not isinstance(schema, pa.Schema):
        schema = as_table(schema, "open()").schema
    parsed = {name: query(text) for name, text in opening.queries.items()}
    plans = {name: one.plan(schema, *opening.roles, opening.choices) for name, one in parsed.items()}
    return Stream(opening, schema, plans, memory_bytes(memory_limit))


def resume(path: str | os.PathLike[str], *, memory_limit: int | str | None = None) -> Stream[Any]:
    """Continue a stream in process that `Stream.save` has written.

    Args:
        path: File that was written by `save`.
        memory_limit: Memory that the stream may use, as in `Query.open`. Default: half of the memory available to the
            process.

    Returns:
        A `Stream` with the queries, options and state of the saved one. Its `offsets` are those that were saved.

    Raises:
        FileNotFoundError: There is no such file.
        BadInputError: The file was not written by `save`, is damaged, or has the format of another version.

    Example:
        >>> import os, tempfile
        >>> import pyarrow as pa
        >>> import streamsift as ss
        >>> path = os.path.join(tempfile.mkdtemp(), "stream.state")
        >>> q = ss.query("PATTERN SEQ(A a, B b) WITHIN 10 RETURN b.t AS end")
        >>> stream = q.open(pa.schema({"t": pa.int64(), "kind": pa.string()}), time="t", type="kind")
        >>> rows = stream.push([{"t": 1, "kind": "A"}])
        >>> stream.save(path, offsets={"events-0": 1})
        >>> stream = resume(path)
        >>> stream.offsets
        {'events-0': 1}
        >>> rows = stream.push([{"t": 5, "kind": "B"}])
        >>> stream.finish().to_pylist()
        [{'end': 5}]
    """
    from streamsift.runtime.state import read_state

    values, head, chunks = read_state(Path(path))
    if values["format"] != FORMAT:
        raise BadInputError(
            f"{path} has format {values['format']}, but this version reads format {FORMAT}\n"
            "Hint: use the version of Streamsift that wrote it."
        )
    saved = values["opening"]
    opening = Opening(**{**saved, "roles": Roles(**saved["roles"])})
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(values["schema"])))
    stream = open_stream(opening, schema, memory_limit)
    stream._load(values, head, chunks)
    return stream


def check_offsets(offsets: Any) -> None:
    """Raise TypeError if offsets would not come back from a file as they are."""
    try:
        same = json.loads(json.dumps(offsets, allow_nan=False)) == offsets
    except (TypeError, ValueError):
        same = False
    if not same:
        raise TypeError(
            f"offsets must be a JSON value (dicts with text keys, lists, text, numbers), not {offsets!r}\n"
            "Hint: convert keys to text, such as f'{topic}-{partition}'."
        )


def as_events(data: Any, schema: pa.Schema) -> pa.Table:
    """Return pushed rows as a table of a schema."""
    if not isinstance(data, list):
        table = as_table(data, "push()")
        if table.schema.equals(schema):
            return table
        if missing := [name for name in schema.names if name not in table.column_names]:
            hint = nearest(missing[0], table.column_names)
            raise BadInputError(f"the pushed rows have no column `{missing[0]}`" + (f"\nHint: {hint}" if hint else ""))
    try:
        if isinstance(data, list):
            return pa.Table.from_pylist(data, schema)
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, AttributeError, TypeError, OverflowError) as error:
        types = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise BadInputError(
            f"the pushed rows do not fit the schema of the stream: {error}\nHint: the query reads {types}."
        ) from error
