"""Message bodies of the services we know. Pure functions; secrets go in and are never kept."""

from __future__ import annotations

from typing import Any

from tasks.alerts.interface import Alert

_LONGEST_SUMMARY = 1024  # of PagerDuty's Events API v2
_LONGEST_KEY = 255


def pagerduty(alert: Alert, routing_key: str) -> dict[str, Any]:
    """Return an event of PagerDuty's Events API v2."""
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": alert.action,
        "dedup_key": alert.key[:_LONGEST_KEY],
    }
    if alert.action == "trigger":
        event["payload"] = {
            "summary": alert.summary[:_LONGEST_SUMMARY],
            "source": alert.source,
            "severity": alert.level,
            "timestamp": alert.at,
            "class": "data-contract",
            "custom_details": dict(alert.details),
        }
    return event


def slack(alert: Alert) -> dict[str, Any]:
    """Return a message for a webhook that understands Slack's form."""
    state = "RESOLVED" if alert.action == "resolve" else alert.level.upper()
    text = f"[{state}] {alert.source}: {alert.summary}"
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def plain(alert: Alert) -> dict[str, Any]:
    """Return the alert as it is, for any HTTP receiver."""
    return {**alert.to_dict(), "id": alert.id}
