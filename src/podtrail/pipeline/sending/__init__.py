"""Delivery: the chain around an exporter, from the outside in.

    SendingQueue     admits, keeps, lets go            queue.py, its room backlog.py and pending.py
    QueueJournal     has it on disk, where configured  queue_journal.py, stored_batch.py, recovery.py
    Consumers        take it out and send it           consumers.py
    cut              keeps requests within bounds      batching.py
    RetrySender      tries again, with back-off        retry_sender.py
    TimeoutSender    one try within its time           timeout_sender.py
    DeliveryLedger   each span ends in one line        ledger.py
    Overflow         says what found no room           overflow.py

The order has reasons: cutting stands before retrying, so that a piece the other side has taken is never sent again
because its neighbour failed; the time limit is that of one try, so that waiting for the next costs none of it.
"""

from podtrail.pipeline.sending.plan import PATIENCE
from podtrail.pipeline.sending.queue import SendingQueue

__all__ = ["PATIENCE", "SendingQueue"]
