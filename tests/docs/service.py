"""Callers of a deployed model, for documents whose commands need some."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

_PAUSE_S = 0.002


@contextlib.contextmanager
def asked(url: str, request: Path) -> Iterator[None]:
    """Send a request over and over to a model for the time of a block.

    Args:
        url: Where the target answers.
        request: A golden input of the model flight-delay.
    """
    body = json.dumps(json.loads(request.read_text(encoding="utf-8"))).encode()
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(_PAUSE_S):
            call = urllib.request.Request(
                f"{url}/v2/models/flight-delay/infer",
                data=body,
                headers={"Content-Type": "application/json"},
            )
            with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(call) as answer:
                answer.read()

    callers = [threading.Thread(target=send) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        ended.set()
        for caller in callers:
            caller.join()
