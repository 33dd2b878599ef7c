"""Run Streamsift on Spark, and Flink CEP, between two Kafka topics, and read the latencies from append times.

The broker is that of the tests. Topics append with the broker's clock, which stamps both the events and the rows. All
run on this machine, so the broker and the producer take their share of its cores from every engine alike.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.engines import flink
from benchmarks.engines.flink import Unavailable
from benchmarks.harness.record import ROOT

if TYPE_CHECKING:
    from benchmarks.stream.latency import Engine, Rows, Tape

sys.path.insert(0, str(ROOT / "tests" / "support"))  # the broker

PARTITIONS = 1  # of several, one may be read ahead of another, and without lateness its events would make others late
SCHEMA = "n bigint, ts bigint, kind string, id bigint"
START_S, PATIENCE_S, HEARTBEAT_S = 2.0, 240, 0.5
BROKER_OPTIONS = ("-Xmx1g",)
SOURCES = Path(__file__).parent.parent / "engines" / "flink_kafka"


class KafkaEngines:
    """A broker, and the engines that read and write its topics."""

    def __init__(self) -> None:
        try:
            from kafka_broker import Broker
            from kafka_jars import NoJars, connector_jars
        except ImportError as error:
            raise Unavailable(f"no Kafka client: {error}") from error
        self.folder = Path(tempfile.mkdtemp(prefix="streamsift-latency-"))
        try:
            self.connector = connector_jars()
            self.broker = Broker(self.folder, BROKER_OPTIONS)
        except NoJars as reason:
            raise Unavailable(str(reason)) from reason
        self.broker.start()
        self.runs = 0
        self._spark: Any = None

    def engines(self) -> dict[str, Engine]:
        return {"Streamsift on Spark": self._run(self._on_spark), "Flink CEP": self._run(self._on_flink)}

    def stop(self) -> None:
        if self._spark is not None:
            self._spark.stop()
        self.broker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, started: Callable[[str, str, int], Any]) -> Engine:
        def run(events: Tape, lateness_ms: int) -> tuple[Rows, np.ndarray]:
            self.runs += 1
            source, sink = f"in{self.runs}", f"out{self.runs}"
            self._create(source)
            self._create(sink)
            with started(source, sink, lateness_ms):
                return self._measure(events, source, sink)

        return run

    def _create(self, topic: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.broker.servers})
        new = NewTopic(topic, PARTITIONS, 1, config={"message.timestamp.type": "LogAppendTime"})
        for done in admin.create_topics([new]).values():
            done.result(PATIENCE_S)

    # --- engines ---
    @contextmanager
    def _on_spark(self, source: str, sink: str, lateness_ms: int) -> Iterator[None]:
        import streamsift as ss
        from benchmarks.stream.latency import BINDING, QUERY

        spark = self._session()
        location = self.broker.uri(source)
        events = ss.read_topic(spark, location, SCHEMA)
        rows = ss.query(QUERY).run(events, lateness=lateness_ms, **BINDING)
        writer = rows.selectExpr("to_json(struct(a, b, c)) AS value").writeStream.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", self.broker.servers).option("topic", sink)
        stream = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{sink}")).start()
        try:
            yield
            if stream.exception() is not None:
                raise RuntimeError(str(stream.exception()))
        finally:
            stream.stop()
            triggers = [each.latency_ms for each in ss.metrics(stream).triggers if each.rows]
            print(f"    {len(triggers)} triggers of Spark, median {np.median(triggers or [0]):,.0f} ms", flush=True)

    def _session(self) -> Any:
        if self._spark is None:
            from pyspark.sql import SparkSession

            os.environ["PYSPARK_PYTHON"] = sys.executable
            settings = {
                "spark.ui.enabled": "false",
                "spark.log.level": "ERROR",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.shuffle.partitions": "2",
                "spark.jars": ",".join(map(str, self.connector)),
            }
            builder = SparkSession.builder.master("local[2]").appName("streamsift latency")
            for key, value in settings.items():
                builder = builder.config(key, value)
            self._spark = builder.getOrCreate()
        return self._spark

    @contextmanager
    def _on_flink(self, source: str, sink: str, lateness_ms: int) -> Iterator[None]:
        from benchmarks.stream.latency import WINDOW_MS

        class_path, log = self._flink_classes(), self.folder / f"flink-{sink}.log"
        words = ["java", *flink.OPTIONS, "-cp", class_path, "Latency", self.broker.servers, source, sink]
        with log.open("w") as errors:
            process = subprocess.Popen([*words, str(WINDOW_MS), str(lateness_ms), "2"], stdout=errors, stderr=errors)
        try:
            yield
            if process.poll() is not None:
                raise RuntimeError(log.read_text()[-2000:])
        finally:
            process.kill()
            process.wait()

    def _flink_classes(self) -> str:
        libraries = [*flink._libraries(), *(jar for jar in self.connector if jar.name.startswith("kafka-clients"))]
        classes, joined = self.folder / "classes", os.pathsep.join(map(str, libraries))
        if not classes.exists():
            sources = [str(flink.SOURCES / "Event.java"), *map(str, SOURCES.glob("*.java"))]
            subprocess.run(["javac", "-nowarn", "-cp", joined, "-d", str(classes), *sources], check=True)
        return os.pathsep.join([str(classes), joined])

    # --- events and rows ---
    def _measure(self, events: Tape, source: str, sink: str) -> tuple[Rows, np.ndarray]:
        """Send the events on schedule, then heartbeats until all rows are there; return the rows and their delays."""
        from benchmarks.stream.latency import expected_rows

        expected, sent = expected_rows(events).num_rows, self._warm_up(source, sink)
        start = self._send(events, source)
        last_ms, end = start + int(events.due_s[-1] * 1000), time.monotonic() + PATIENCE_S
        while self._count(sink) - sent < expected and time.monotonic() < end:
            beat = {"n": -1, "ts": max(last_ms, round(time.time() * 1000)), "kind": "-", "id": 0}
            for partition in range(PARTITIONS):
                self.broker.send(source, [beat], partition=partition)
            time.sleep(HEARTBEAT_S)
        arrived = {value["n"]: at for value, at in self._records(source)}
        rows = [(value["a"], value["b"], value["c"], at) for value, at in self._records(sink) if value["a"] >= 0]
        first, second, third, emitted = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        at = np.array([arrived[number] for number in third.tolist()], np.int64)
        measured = third >= events.warm
        return pa.table({"a": first, "b": second, "c": third}), (emitted - at)[measured] / 1000

    def _warm_up(self, source: str, sink: str) -> int:
        """Send matches of other keys until the engine has emitted some; return the number of its rows so far."""
        end = time.monotonic() + PATIENCE_S
        while self._count(sink) == 0:
            if time.monotonic() > end:
                raise RuntimeError(f"no rows in {sink} after {PATIENCE_S} s")
            now = round(time.time() * 1000)
            kinds = [{"n": -2, "ts": now + i, "kind": kind, "id": -1} for i, kind in enumerate("ABC")]
            for partition in range(PARTITIONS):
                self.broker.send(source, [{**each, "id": -1 - partition} for each in kinds], partition=partition)
            time.sleep(HEARTBEAT_S)
        time.sleep(5)
        return self._count(sink)

    def _send(self, events: Tape, topic: str) -> int:
        """Send each event when it is due, and return the time of the start in milliseconds."""
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self.broker.servers, "linger.ms": 1, "queue.buffering.max.messages": 2_000_000}
        )
        start_ms = round((time.time() + START_S + len(events.due_s) / 200_000) * 1000)
        columns = events.started_at(start_ms).to_pydict()
        rows = zip(*columns.values(), strict=True)
        payloads = [json.dumps(dict(zip(columns, row, strict=True))).encode() for row in rows]
        keys, due = columns["id"], events.due_s.tolist()
        number = 0
        while number < len(payloads):
            now = time.time() - start_ms / 1000
            until = int(np.searchsorted(events.due_s, now, side="right"))
            for each in range(number, until):
                producer.produce(topic, payloads[each], partition=keys[each] % PARTITIONS)
            number = max(number, until)
            producer.poll(0)
            if number < len(payloads):
                time.sleep(max(0.0, min(due[number] - (time.time() - start_ms / 1000), 0.01)))
        assert producer.flush(PATIENCE_S) == 0, "events have not been sent"
        return start_ms

    def _count(self, topic: str) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.broker.servers, "group.id": "latency"})
        try:
            parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            return sum(consumer.get_watermark_offsets(part, timeout=30)[1] for part in parts)
        finally:
            consumer.close()

    def _records(self, topic: str) -> Iterator[tuple[dict[str, int], int]]:
        """Yield the values of a topic with their append times, in milliseconds."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.broker.servers, "group.id": "latency", "auto.offset.reset": "earliest"}
        for number in range(PARTITIONS):
            consumer = Consumer(settings)
            part = TopicPartition(topic, number, 0)
            _, high = consumer.get_watermark_offsets(part, timeout=30)
            consumer.assign([part])
            offset = 0
            while offset < high:
                for record in consumer.consume(10_000, timeout=1):
                    offset = record.offset() + 1
                    yield json.loads(record.value()), record.timestamp()[1]
            consumer.close()
