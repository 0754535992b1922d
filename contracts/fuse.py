"""A persisted circuit breaker of (contract version, consumer): closed, open, half-open.

Open refuses before a byte is read. It is repaired by a reset that says who and why, or by time:
either makes it half-open, in which exactly one batch is tried; that one closes or opens it again.
All changes are compare-and-set, so two processes agree and a killed one leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from contracts.base import canonical, clock, failpoint
from contracts.base.errors import (
    FuseOpen,
    InputError,
    OverwriteRefused,
    PointerMoved,
    ReportInvalid,
    UnavailableError,
)
from contracts.objects.interface import ObjectStore
from contracts.terms import Contract

State = Literal["closed", "open", "half-open"]

_TRIAL = timedelta(minutes=10)
_LARGEST_STATE = 1 << 20
_EVENTS_KEPT = 50
_ATTEMPTS = 100


class TrialRunning(FuseOpen):
    """The one trial of a half-open fuse is held by somebody else; it will soon be decided."""

    code = "fuse-trial"


@dataclass(frozen=True)
class Fuse:
    """The state of a fuse.

    Attributes:
        state: closed lets batches through, open refuses them, half-open tries one.
        violations: Different batches rejected in a row.
        since: When it came into this state, RFC 3339; empty if it never changed.
        reason: Why it is in this state.
        last_batch: Digest of the batch judged last, so that a repeat counts once.
        trial_until: Until when somebody holds the one trial of half-open; empty if nobody does.
        events: What happened to it, oldest first; a bounded number.
    """

    state: State = "closed"
    violations: int = 0
    since: str = ""
    reason: str = ""
    last_batch: str = ""
    trial_until: str = ""
    events: tuple[str, ...] = ()

    def moved(self, state: State, now: datetime, reason: str) -> Fuse:
        """Return the fuse in another state, with the event noted."""
        event = f"{clock.to_text(now)} {self.state} -> {state}: {reason}"
        return replace(
            self,
            state=state,
            since=clock.to_text(now),
            reason=reason,
            trial_until="",
            events=(*self.events, event)[-_EVENTS_KEPT:],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "events": list(self.events)}


def status(store: ObjectStore, contract: Contract, consumer: str) -> Fuse:
    """Return the state of a fuse; one that never blew is closed.

    Raises:
        ReportInvalid: If the stored state cannot be read; it is not taken for closed.
    """
    return _read(store, _key(contract, consumer))[0]


def states(store: ObjectStore, contract: Contract) -> list[tuple[str, Fuse]]:
    """Return every consumer whose fuse ever changed, with its state."""
    prefix = f"fuses/{contract.name}/{contract.version}/"
    found = [info.key for info in store.list(prefix)]
    return [(key.removeprefix(prefix).removesuffix(".json"), _read(store, key)[0]) for key in found]


def admit(store: ObjectStore, contract: Contract, consumer: str, now: datetime) -> Fuse:
    """Ask to load a batch, before anything of it is read.

    Returns:
        The fuse: closed, or half-open with the one trial held by the caller.

    Raises:
        FuseOpen: If it is open.
        TrialRunning: If it is half-open and somebody else tries a batch.
    """

    def ask(fuse: Fuse) -> Fuse:
        if fuse.state == "closed":
            return fuse
        if fuse.state == "open":
            retry = clock.from_text(fuse.since) + timedelta(
                milliseconds=contract.fuse.retry_after_ms
            )
            if now < retry:
                how_long = f"until {clock.to_text(retry)}"
                raise _refusal(FuseOpen, contract, consumer, fuse, how_long)
            fuse = fuse.moved("half-open", now, "time to try again has come")
        if fuse.trial_until and now < clock.from_text(fuse.trial_until):
            how_long = "while another batch is being tried"
            raise _refusal(TrialRunning, contract, consumer, fuse, how_long)
        return replace(fuse, trial_until=clock.to_text(now + _TRIAL))

    return _change(store, _key(contract, consumer), ask)


def record(
    store: ObjectStore,
    contract: Contract,
    consumer: str,
    *,
    batch_digest: str,
    violated: bool,
    reason: str,
    now: datetime,
) -> Fuse:
    """Tell the fuse how a batch that was admitted turned out.

    Args:
        store: Where fuses are kept.
        contract: The contract.
        consumer: Who loads.
        batch_digest: Identity of the batch; judging it again changes nothing.
        violated: Whether it was rejected.
        reason: Why, in words.
        now: Wall time.

    Returns:
        The fuse as it is now.
    """

    def note(fuse: Fuse) -> Fuse:
        if not violated:
            if fuse.state == "half-open":
                fuse = fuse.moved("closed", now, "the batch tried keeps the contract")
            if fuse.state == "open" or not fuse.violations:
                return fuse
            return replace(fuse, violations=0, last_batch=batch_digest)
        if fuse.state == "half-open":
            return replace(fuse.moved("open", now, reason), last_batch=batch_digest)
        repeated = fuse.last_batch == batch_digest and fuse.violations > 0
        count = fuse.violations + (not repeated)
        fuse = replace(fuse, violations=count, last_batch=batch_digest)
        blows = fuse.state == "closed" and count >= contract.fuse.violations
        return fuse.moved("open", now, reason) if blows else fuse

    return _change(store, _key(contract, consumer), note)


def release(store: ObjectStore, contract: Contract, consumer: str) -> Fuse:
    """Give the trial of a half-open fuse back, because the batch could not be judged."""
    return _change(store, _key(contract, consumer), lambda fuse: replace(fuse, trial_until=""))


def reset(
    store: ObjectStore, contract: Contract, consumer: str, *, who: str, why: str, now: datetime
) -> Fuse:
    """Let one batch be tried although the fuse is open.

    Raises:
        InputError: If nobody or no reason is named.
    """
    if not who.strip() or not why.strip():
        raise InputError(
            "a reset needs a name and a reason", expected="who and why", found="empty text"
        )

    def mend(fuse: Fuse) -> Fuse:
        if fuse.state == "closed":
            return fuse
        return fuse.moved("half-open", now, f"reset by {who}: {why}")

    return _change(store, _key(contract, consumer), mend)


def _refusal(
    kind: type[FuseOpen], contract: Contract, consumer: str, fuse: Fuse, how_long: str
) -> FuseOpen:
    return kind(
        f"fuse of {contract.identity} for {consumer} is {fuse.state} {how_long}; nothing was read",
        expected="a closed fuse",
        found=f"{fuse.state} since {fuse.since}: {fuse.reason}",
        location=f"{contract.identity} -> {consumer}",
        remedy=f"Have {contract.contact} deliver a good batch, then reset the fuse "
        "and say who and why.",
    )


def _key(contract: Contract, consumer: str) -> str:
    return f"fuses/{contract.name}/{contract.version}/{consumer}.json"


def _change(store: ObjectStore, key: str, change: Callable[[Fuse], Fuse]) -> Fuse:
    """Apply a change to the present state; try again if somebody else was faster."""
    for _ in range(_ATTEMPTS):
        present, etag = _read(store, key)
        wanted = change(present)
        if wanted == present:
            return present
        failpoint.hit("fuse.change.before")
        try:
            data = canonical.dumps(wanted.to_dict())
            if etag is None:
                store.put(key, data, if_none_match=True)
            else:
                store.put(key, data, if_match=etag)
        except (OverwriteRefused, PointerMoved):
            continue
        failpoint.hit("fuse.change.after")
        return wanted
    raise UnavailableError(
        "the fuse is being changed by too many others", location=key, remedy="Try again."
    )


def _read(store: ObjectStore, key: str) -> tuple[Fuse, str | None]:
    info = store.head(key)
    if info is None:
        return Fuse(), None
    content = canonical.loads(store.get(key, limit=_LARGEST_STATE), where=key)
    if not isinstance(content, dict) or set(content) != set(Fuse.__dataclass_fields__):
        raise ReportInvalid("the state of a fuse cannot be read", location=key)
    if content["state"] not in get_args(State) or not isinstance(content["events"], list):
        raise ReportInvalid("the state of a fuse is unknown", found=repr(content["state"]))
    return Fuse(**{**content, "events": tuple(content["events"])}), info.etag
