"""Clients of Kafka on librdkafka: the Collector's keys, producers whose delivery is awaited, transactions.

`settings` is all that a configuration needs; the other modules import `confluent_kafka` (extra `podtrail[kafka]`) and
are imported when a component is made.
"""
