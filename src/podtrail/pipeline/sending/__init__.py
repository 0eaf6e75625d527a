"""Delivery: the chain around an exporter, from the outside in.

    SendingQueue     admits, merges, hands to consumers, drains     queue.py
    cut              keeps requests within what servers take        batching.py
    RetrySender      tries again what is worth it, with back-off    retry_sender.py
    TimeoutSender    one try within its time                        timeout_sender.py
    DeliveryLedger   every span ends in exactly one line            ledger.py
    Overflow         says what found no room, once a minute         overflow.py

The order has reasons: cutting stands before retrying, so that a piece the other side has taken is never sent again
because its neighbour failed; the time limit is that of one try, so that waiting for the next costs none of it.
"""

from podtrail.pipeline.sending.plan import PATIENCE
from podtrail.pipeline.sending.queue import SendingQueue

__all__ = ["PATIENCE", "SendingQueue"]
