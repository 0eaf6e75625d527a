"""Topics, three agents, two gateways and a backend on Kafka, for as long as it takes to tell the stories of some Pods.

    BROKERS=kafka-1:9092,kafka-2:9092 python examples/kafka/run.py [--exactly-once] [--recording FILE] [FOLDER]

Three schedulers take turns at being the leader, so that the attempts of a Pod come by way of several agents; one
gateway is restarted in the middle (with --exactly-once: killed). What the backend got is in FOLDER/kept.otlp
(kafka-example/kept.otlp), the log of each process beside it. Topics and groups have names of their own, and the topics
are deleted in the end.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from podtrail.otlp import SpanView, split
from podtrail.recording import read_recording

HERE = Path(__file__).parent
PODTRAIL = shutil.which("podtrail", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
DEADLINE = 180
PARTITIONS = 6
# Each is the leader from a part of the time on; late, for Pods wait once the cluster is full.
NODES = {"control-plane-1": 0.0, "control-plane-2": 0.6, "control-plane-3": 0.8}
GATEWAYS = ("gateway-0", "gateway-1")
RUN = f"podtrail-example-{uuid.uuid4().hex[:8]}"
NAMES = {"TOPIC": f"{RUN}-spans", "KEPT": f"{RUN}-kept", "CHECKPOINTS": f"{RUN}-checkpoints", "GROUP": RUN}
ANYWHERE = {"LISTEN": "127.0.0.1:0", "HEALTH": "127.0.0.1:0", "METRICS": "127.0.0.1:0"}
RUNNING = []
# What is minutes in a cluster is seconds here.
SOON = (
    "processors.tail_sampling.decision_wait=15s",
    "processors.tail_sampling.linked_traces.grace_period=10s",
    "processors.link_stitching.reorder_wait=5s",
)


def say(text):
    print(text, flush=True)


def podtrail(*arguments):
    done = subprocess.run([PODTRAIL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"podtrail {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class Process:
    """A podtrail that runs until it is ended; its log is a file."""

    def __init__(self, folder, name, *arguments, **variables):
        self.log = folder / f"{name}.log"
        with self.log.open("a") as log:
            self._begins = log.tell()  # behind what it said in a life before
            environment = {**os.environ, **NAMES, **ANYWHERE, **variables}
            self.process = subprocess.Popen([PODTRAIL, *arguments], env=environment, stderr=log, stdout=log)
        RUNNING.append(self)

    def line(self, pattern):
        end = time.monotonic() + DEADLINE
        while not (found := re.search(pattern, self._said())):
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{self.log} lacks {pattern!r}:\n{self._said()[-2000:]}")
            time.sleep(0.1)
        return found

    def _said(self):
        return self.log.read_bytes()[self._begins :].decode()

    def address(self):
        return "http://" + self.line(r"listening on (\S+) \(grpc\)")[1]

    def end(self):
        self.process.terminate()
        if self.process.wait(DEADLINE):
            sys.exit(f"{self.log}:\n{self.log.read_text()[-2000:]}")
        RUNNING.remove(self)

    def kill(self):
        self.process.kill()
        self.process.wait()
        RUNNING.remove(self)


class Site:
    """Gateways and a backend; what they read is there already."""

    def __init__(self, folder, exactly_once):
        self.folder = folder
        self.exactly_once = exactly_once
        kept = f"--to={folder / 'kept.otlp'}"
        self.backend = Process(folder, "backend", "record", "--from=127.0.0.1:0", kept, "--overwrite")
        self.example = "exactly-once-gateway.yaml" if exactly_once else "gateway.yaml"
        self.address = self.backend.address()
        self.gateways = {name: self.gateway(name) for name in GATEWAYS}
        self.readers = [self.run("reader", "reader.yaml")] if exactly_once else []
        self.topics = {NAMES["TOPIC"]: NAMES["GROUP"]}
        if exactly_once:
            self.topics[NAMES["KEPT"]] = f"{NAMES['GROUP']}-reader"
        for each in [*self.gateways.values(), *self.readers]:
            each.line("ready: ")

    def run(self, name, example, *arguments):
        config = ("run", "--config", str(HERE / example))
        variables = {"GATEWAY_NAME": name, "OTEL_EXPORTER_OTLP_ENDPOINT": self.address}
        return Process(self.folder, name, *config, *arguments, **variables)

    def gateway(self, name):
        return self.run(name, self.example, *(f"--set={key}" for key in SOON))

    def restart(self, name):
        old = self.gateways[name]
        if self.exactly_once:
            old.kill()
        else:
            old.end()
        self.gateways[name] = self.gateway(name)
        say(f"{name} was {'killed' if self.exactly_once else 'stopped'}, and is started again")

    def end(self):
        """Ends all, once everything is decided and delivered."""
        for topic, group in self.topics.items():
            end = time.monotonic() + DEADLINE
            while left := undone(group, topic):
                if time.monotonic() > end:
                    sys.exit(f"{topic}: {left} records are still not done: look at the logs in {self.folder}")
                time.sleep(0.5)
        for each in [*self.gateways.values(), *self.readers, self.backend]:
            each.end()


def undone(group, topic):
    """Returns how many records are not decided and delivered: what stands behind the offsets of a group."""
    told = {"bootstrap.servers": os.environ["BROKERS"], "group.id": group, "enable.auto.commit": False}
    consumer = Consumer({**told, "enable.partition.eof": True, "auto.offset.reset": "earliest"})
    try:
        places = consumer.committed([TopicPartition(topic, partition) for partition in range(PARTITIONS)], DEADLINE)
        consumer.assign(places)
        ended, found = set(), 0
        while len(ended) < PARTITIONS:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    found += 1
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
        return found
    finally:
        consumer.close()


def turns(recording):
    """Returns from when to when each node is the leader's."""
    stat = json.loads(podtrail("recording", "stat", "--json", recording))
    seconds = (int(stat["lastArrivalUnixNano"]) - int(stat["firstArrivalUnixNano"])) / 1e9
    times = [f"{seconds * part:.3f}s" for part in NODES.values()]
    for node, since, until in zip(NODES, times, [*times[1:], "24h"], strict=True):
        yield node, ("--since", since, "--until", until)


def tell(folder, recording, site):
    """Has an agent after the other take what its scheduler did."""
    for node, turn in turns(recording):
        part = str(folder / f"{node}.otlp")
        podtrail("recording", "cut", recording, *turn, "--to", part)
        agent = Process(folder, node, "run", "--config", str(HERE / "agent.yaml"), CLUSTER="production", NODE_NAME=node)
        podtrail("replay", part, "--endpoint", agent.address(), "--speed=max")
        agent.end()
        say(f"{node}: what its scheduler did is in Kafka")
        if node == "control-plane-2":
            site.restart(GATEWAYS[0])


def twice(recording):
    """Returns how many spans came, and how many of them not for the first time."""
    spans = [
        SpanView(raw)
        for record in read_recording(recording)
        for group in record.intake.groups
        for raw in split(group.spans)
    ]
    return len(spans), len(spans) - len({(span.trace_id, span.span_id) for span in spans})


def make_topics():
    topics = (f"{NAMES['TOPIC']}={PARTITIONS}", f"{NAMES['KEPT']}={PARTITIONS}")
    state = f"{NAMES['CHECKPOINTS']}={PARTITIONS}:compact"
    if subprocess.run([sys.executable, HERE / "topics.py", *topics, state], check=False).returncode:
        sys.exit("there are no topics to write to")


def delete_topics():
    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    for deleted in admin.delete_topics([NAMES[key] for key in ("TOPIC", "KEPT", "CHECKPOINTS")]).values():
        deleted.exception(DEADLINE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default="kafka-example", type=Path)
    parser.add_argument("--exactly-once", action="store_true", help="gateways write what they keep into a topic")
    parser.add_argument("--recording", help="spans to send; by default those of a simulated cluster")
    told = parser.parse_args()
    if "BROKERS" not in os.environ:
        sys.exit("BROKERS says where the brokers are: BROKERS=kafka-1:9092,kafka-2:9092")
    told.folder.mkdir(parents=True, exist_ok=True)
    if told.recording is None:
        told.recording = str(told.folder / "all.otlp")
        start = datetime.now(UTC) - timedelta(seconds=90)
        cluster = ("--seed=7", "--length=90s", "--pods-per-second=2", f"--start={start:%Y-%m-%dT%H:%M:%SZ}")
        podtrail("generate", *cluster, "--to", told.recording)
    make_topics()
    try:
        site = Site(told.folder, told.exactly_once)
        tell(told.folder, told.recording, site)
        say("waiting until everything is decided and delivered")
        site.end()
    finally:
        for left in RUNNING[:]:
            left.kill()
        delete_topics()
    kept = told.folder / "kept.otlp"
    say(podtrail("recording", "stat", "--top=6", str(kept)))
    say("{:,} spans got there, {} of them twice".format(*twice(kept)))
    say(f"podtrail why pod NAME --from {kept}")


if __name__ == "__main__":
    main()
