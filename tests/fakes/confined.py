"""Runs a program with less than we have: no network, no root, read-only folders, a full disk.

Run as a program, ``confined.py PLAN COMMAND...``: it enters namespaces of its own, which needs no
privilege where the kernel allows user namespaces, and becomes the command. Standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_KEPT_FLAGS = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 1024}
_KEPT_FLAGS |= {os.ST_NODIRATIME: 2048, os.ST_RELATIME: 1 << 21}
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_ROOT, _NOBODY_IN_PARTICULAR = 0, 4321

_libc = ctypes.CDLL(None, use_errno=True)


def confined(
    *,
    network: bool = True,
    root: bool = True,
    readonly: tuple[Path, ...] = (),
    disk: tuple[Path, str] | None = None,
) -> tuple[str, ...]:
    """Return what to put before a command.

    Args:
        network: Whether it has more than a loopback of its own.
        root: Whether it may be root inside; without, it is a user that no file knows.
        readonly: Folders that cannot be written.
        disk: A folder to be a file system of its own, and its size.
    """
    plan = {
        "network": network,
        "root": root,
        "readonly": [str(path) for path in readonly],
        "disk": [str(disk[0]), disk[1]] if disk else None,
    }
    return (sys.executable, "-I", "-S", __file__, json.dumps(plan))


@cache
def impossible() -> str:
    """Return why programs cannot be confined on this machine; empty if they can."""
    command = [*confined(network=False, root=False, readonly=(Path("/usr"),)), "/bin/true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip() or "no reason").splitlines()[-1]


def _main(plan: dict[str, Any], command: list[str]) -> None:
    _enter(_CLONE_NEWUSER | _CLONE_NEWNS | (0 if plan["network"] else _CLONE_NEWNET), _ROOT)
    _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    if not plan["network"]:
        _loopback_up()
    if plan["disk"]:
        folder, size = plan["disk"]
        _call("mount", b"none", os.fsencode(folder), b"tmpfs", 0, f"size={size}".encode())
    for folder in plan["readonly"]:
        _seal(folder)
    if not plan["root"]:
        _enter(_CLONE_NEWUSER, _NOBODY_IN_PARTICULAR)
    os.execvp(command[0], command)


def _enter(flags: int, identity: int) -> None:
    """Enter new namespaces as the user we are, under another number."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", flags)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{identity} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{identity} {group} 1")


def _seal(folder: str) -> None:
    path = os.fsencode(folder)
    _call("mount", path, path, None, _MS_BIND | _MS_REC, None)
    present = os.statvfs(folder).f_flag
    kept = sum(flag for seen, flag in _KEPT_FLAGS.items() if present & seen)
    _call("mount", None, path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept, None)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]), sys.argv[2:])
