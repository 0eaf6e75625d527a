"""Makes podtrail's topics where they are not there.

    BROKERS=kafka-1:9092,kafka-2:9092 python examples/kafka/topics.py podtrail_spans=24 podtrail_checkpoints=24:compact

Each argument is a topic and its number of partitions. REPLICAS says how many brokers have a copy of each (3, or as
many as there are); KAFKA_USERNAME and KAFKA_PASSWORD who asks, by SCRAM-SHA-512; KAFKA_CA whose certificates to trust.
Python needs confluent-kafka, which podtrail[kafka] brings and the image has.
"""

import os
import re
import sys

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE = 120
OF_SPANS = {
    "retention.ms": str(24 * 3_600_000),  # for a day gateways may be away
    "message.timestamp.type": "LogAppendTime",  # the brokers' clocks, not those of whoever writes
}
OF_STATE = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2", "segment.ms": "3600000"}


def client():
    properties = {"bootstrap.servers": os.environ["BROKERS"], "log_level": 0}
    authority, user = os.environ.get("KAFKA_CA"), os.environ.get("KAFKA_USERNAME")
    if user:
        password = os.environ["KAFKA_PASSWORD"]
        properties |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": user, "sasl.password": password}
    if authority:
        properties["ssl.ca.location"] = authority
    properties["security.protocol"] = ("SASL_" if user else "") + ("SSL" if authority else "PLAINTEXT")
    return AdminClient(properties)


def make(wanted):
    """Returns what is not as it should be."""
    admin = client()
    cluster = admin.list_topics(timeout=DEADLINE)
    replicas = int(os.environ.get("REPLICAS") or min(3, len(cluster.brokers)))
    safe = {"min.insync.replicas": str(min(2, replicas))}
    wrong = []
    for name, count, kind in wanted:
        if name in cluster.topics:
            found = len(cluster.topics[name].partitions)
            print(f"{name}: is there, {found} partitions")
            if found != int(count):  # nothing is added: keys would lead elsewhere, and traces be judged by halves
                wrong.append(f"{name} has {found} partitions, not {count}: leave it so, or read it empty and delete it")
            continue
        config = (OF_STATE if kind else OF_SPANS) | safe
        topic = NewTopic(name, int(count), replicas, config=config)
        try:
            admin.create_topics([topic], operation_timeout=DEADLINE, request_timeout=DEADLINE)[name].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # someone was quicker
                raise
        print(f"{name}: made, {count} partitions, {replicas} replicas")
    return "\n".join(wrong)


if __name__ == "__main__":
    arguments = [re.fullmatch(r"([\w.-]+)=(\d+)(:compact)?", argument) for argument in sys.argv[1:]]
    if not arguments or not all(arguments):
        sys.exit(__doc__)
    try:
        sys.exit(make([argument.groups() for argument in arguments]) or 0)
    except KafkaException as error:
        sys.exit(f"{os.environ['BROKERS']}: {error.args[0].str()}")
