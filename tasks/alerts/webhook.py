"""Sends alerts over HTTP: one request, no redirects, no proxy, a short time limit."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from contracts.base import canonical
from contracts.base.errors import InputError, UnavailableError
from tasks.alerts import payloads
from tasks.alerts.interface import Alert

PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
_TIMEOUT_S = 5.0

Build = Callable[[Alert], Mapping[str, Any]]


class Webhook:
    """A place that takes alerts as JSON over HTTP."""

    def __init__(
        self, kind: str, url: str, build: Build = payloads.plain, *, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """Send to ``url`` what ``build`` makes of an alert.

        Raises:
            InputError: If the address is not one of HTTP.
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                "not an address for alerts", expected="http:// or https://", found=parts.scheme
            )
        self.name = f"{kind}:{parts.hostname}"  # the path of a webhook is its secret
        self._url = url
        self._build = build
        self._timeout_s = timeout_s

    def send(self, alert: Alert) -> None:
        """Post an alert.

        Raises:
            UnavailableError: If the answer is not 2xx or there is none.
        """
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked above
            self._url,
            data=canonical.dumps(self._build(alert)),
            headers={"content-type": "application/json", "user-agent": "caisson"},
            method="POST",
        )
        opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=self._timeout_s):
                return
        except urllib.error.HTTPError as err:
            with err:
                reason = f"HTTP status {err.code}"
        except (OSError, http.client.HTTPException) as err:
            reason = type(err).__name__
        raise UnavailableError(
            "an alert could not be delivered and is kept",
            expected="an answer 2xx",
            found=reason,
            location=self.name,
            remedy="It is sent again with the next alert, or by flushing the outbox.",
        )


def pagerduty(routing_key: str, url: str = PAGERDUTY_URL) -> Webhook:
    """Return the sink of a PagerDuty service."""
    return Webhook("pagerduty", url, lambda alert: payloads.pagerduty(alert, routing_key))


def slack(url: str) -> Webhook:
    """Return the sink of a Slack-style incoming webhook."""
    return Webhook("slack", url, payloads.slack)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follow nothing: an alert may hold what only its receiver should see."""
        del arguments, named
