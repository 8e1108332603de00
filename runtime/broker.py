"""The broker that django-q2 asks for: it hands out nothing.

Workers listen and claim by themselves. A shared task queue would carry a promise it cannot keep: a worker that is killed
while it waits there takes the queue's lock along, and no other worker of the cluster ever gets a task again.
"""

from __future__ import annotations

import time

from django_q.brokers import Broker


class Doorbell(Broker):
    """Keeps django-q2's pusher quiet. Nothing is stored, queued, or read back, so nothing forged can run."""

    def dequeue(self) -> None:
        time.sleep(0.1)

    def enqueue(self, task: object) -> None:
        raise NotImplementedError("Holdfast runs no django-q2 tasks; start a run instead.")

    def queue_size(self) -> int:
        return 0

    def lock_size(self) -> int:
        return 0

    def ping(self) -> bool:
        return True

    def info(self) -> str:
        return "Holdfast"
