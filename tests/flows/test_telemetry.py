"""Nobody is called: every process of a demo, and every library it loads, stays on this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fakes.reference import Reference

_ADDRESS = re.compile(r"sa_family=(AF_\w+)(?:.*?(?:inet_addr\(|AF_INET6, )\"([^\"]+)\")?")
_LOCAL = {"AF_UNIX", "AF_NETLINK", "AF_UNSPEC"}
_DNS = 53

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installation")]


def outside(trace: Path) -> list[str]:
    """The traced calls that concern an address outside this machine, or a look-up of a name."""
    return [
        line
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines()
        if _leaves(line)
    ]


def _leaves(line: str) -> bool:
    if f"htons({_DNS})" in line:
        return True
    return any(
        family not in _LOCAL and not (address.startswith("127.") or address in ("::1", "0.0.0.0"))
        for family, address in _ADDRESS.findall(line)
    )


def test_a_whole_demo_calls_nobody(undisturbed: Reference) -> None:
    """No process of a demo, from the first to the last, speaks to anything outside this machine."""
    _assert_silent(undisturbed.trace)


def test_loaded_libraries_call_nobody(undisturbed: Reference) -> None:
    """Prefect, MLflow, ONNX Runtime and Great Expectations stay silent for 45 seconds."""
    _assert_silent(undisturbed.idle_trace)


@pytest.mark.parametrize(
    ("line", "leaves"),
    [
        ('connect(5, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}', 1),
        ('connect(5, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.2.3.4")}', 1),
        ('sendto(5, "", 0, 0, {sa_family=AF_INET6, inet_pton(AF_INET6, "2001::1")}, 28) = 0', 1),
        ('connect(5, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}', 0),
        ('connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1', 0),
        ('recvfrom(4, "x", 1, 0, NULL, NULL) = 1', 0),
    ],
)
def test_a_call_outside_would_be_seen(line: str, leaves: int) -> None:
    """The reader of traces finds what it looks for."""
    assert _leaves(line) == bool(leaves)


def _assert_silent(trace: Path | None) -> None:
    if trace is None:
        pytest.skip("no strace that may trace on this machine")
    assert "socket(" in trace.read_text(encoding="utf-8", errors="replace"), "nothing was traced"
    assert outside(trace) == []
