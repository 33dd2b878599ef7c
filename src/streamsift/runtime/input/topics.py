"""Parse the location of a Kafka topic, such as `kafka://broker:9092/payments`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from streamsift.errors import SetupError

# A `Path` made of a URI has only one slash after the colon.
PREFIX = re.compile(r"kafka:/{1,2}(?=[^/])", re.IGNORECASE)
FORM = "kafka://HOST:PORT[,HOST:PORT…]/TOPIC[?OPTION=VALUE&…]"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a Kafka cluster, and more options of Spark's Kafka connector."""

    servers: str  # HOST:PORT, several separated by commas
    name: str
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.name}"


def is_topic(location: object) -> bool:
    return PREFIX.match(str(location)) is not None


def topic_of(location: object) -> Topic:
    """Return the topic of a location. Raises SetupError if it has no server, port or topic.

    >>> topic_of("kafka://one:9092,two:9092/payments?maxOffsetsPerTrigger=10000")
    Topic(servers='one:9092,two:9092', name='payments', options={'maxOffsetsPerTrigger': '10000'})
    """
    split = urlsplit(PREFIX.sub("kafka://", str(location)))
    servers, name = split.netloc, split.path.strip("/")
    has_ports = all(re.fullmatch(r"[^:]+:\d+|\[.+\]:\d+", server) for server in servers.split(","))
    if not has_ports or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
        raise SetupError(f"invalid location of a Kafka topic: {location}\nHint: write {FORM}.")
    return Topic(servers, name, dict(parse_qsl(split.query)))
