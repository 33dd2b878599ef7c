"""Run a Kafka broker on loopback, in KRaft mode: one process that is broker and controller.

A broker can be stopped, killed and started again on the same port, with the same data.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kafka_jars import broker_jars

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
# Little memory, and no code optimized for a broker that lives for a minute.
JVM_OPTIONS = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
PATIENCE_SECONDS = 60
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
log.cleaner.enable=false
"""


class Broker:
    """A broker with its data in a directory."""

    def __init__(self, directory: Path, jvm_options: Sequence[str] = JVM_OPTIONS) -> None:
        self.directory, self.port = directory, free_port()
        self._settings = directory / "broker.properties"
        settings = SETTINGS.format(port=self.port, controller=free_port(), directory=directory)
        self._settings.write_text(settings)
        self._java = ["java", *jvm_options, "-cp", os.pathsep.join(map(str, broker_jars()))]
        self._process: subprocess.Popen[bytes] | None = None
        format_words = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._settings)]
        subprocess.run([*self._java, *format_words], capture_output=True, check=True)

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker has not been started"
        return self._process.pid

    def uri(self, topic: str, **options: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"kafka://{self.servers}/{topic}" + (f"?{query}" if query else "")

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        with (self.directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen([*self._java, "kafka.Kafka", str(self._settings)], stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE_SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    pass
                self._admin().list_topics(timeout=5)
                return
            except (OSError, KafkaException):
                time.sleep(0.1)
        raise RuntimeError((self.directory / "broker.log").read_text()[-3000:])

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._process = None

    # --- topics ---
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "logger": _silent()})

    def create(self, topic: str, partitions: int = 1) -> str:
        admin = self._admin()  # kept until the results are there
        for done in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            done.result(PATIENCE_SECONDS)
        return topic

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Add partitions until the topic has this many."""
        admin = self._admin()
        for done in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            done.result(PATIENCE_SECONDS)

    def send(self, topic: str, values: Iterable[Any], *, key: str | None = None, partition: int | None = None) -> None:
        """Append records. A value is bytes, None, or an object that is sent as JSON; `key` is the name of a member."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "partitioner": "murmur2_random"})
        place = {} if partition is None else {"partition": partition}
        for value in values:
            payload = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            producer.produce(topic, payload, None if key is None else str(value[key]).encode(), **place)
            producer.poll(0)
        left = producer.flush(PATIENCE_SECONDS)
        assert not left, f"{left} records have not been sent"

    def receive(self, topic: str) -> list[bytes | None]:
        """Return the values of all records of a topic, partition by partition."""
        settings = {"bootstrap.servers": self.servers, "group.id": "tests", "enable.auto.commit": False}
        consumer = Consumer(settings)
        values = []
        try:
            partitions = consumer.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions
            for number in partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE_SECONDS)
                consumer.assign([TopicPartition(topic, number, low)])
                end = time.monotonic() + PATIENCE_SECONDS
                while low < high and time.monotonic() < end:
                    for record in consumer.consume(1000, timeout=0.5):
                        low = record.offset() + 1
                        values.append(record.value())
                assert low >= high, f"{high - low} records of partition {number} have not been received"
        finally:
            consumer.close()
        return values


@contextmanager
def running_broker(directory: Path) -> Iterator[Broker]:
    broker = Broker(directory)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _silent() -> Any:
    """Return a logger for clients of a broker that does not answer yet."""
    import logging

    logger = logging.getLogger("streamsift.tests.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
