"""One suite for every object store: whole objects, conditional puts, safe keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base import digest
from contracts.base.errors import InputError, OverwriteRefused, PointerMoved, UnavailableError
from contracts.objects.folder import FolderStore
from contracts.objects.interface import ObjectMissing, ObjectStore, check_key


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return FolderStore(tmp_path / "objects")


def test_what_is_put_is_there(store: ObjectStore) -> None:
    """An object comes back whole, with its size and etag, until it is deleted."""
    info = store.put("a/b.json", b"data")
    assert (info.key, info.size, info.etag) == ("a/b.json", 4, digest.of_bytes(b"data"))
    assert store.get("a/b.json", limit=4) == b"data"
    assert store.head("a/b.json") == info
    store.delete("a/b.json")
    store.delete("a/b.json")
    assert store.head("a/b.json") is None


def test_files_go_in_and_out(store: ObjectStore, tmp_path: Path) -> None:
    """An object can be made from a file and written to one, whole."""
    (tmp_path / "in").write_bytes(b"x" * 100_000)
    info = store.put_file("big", tmp_path / "in")
    assert info == store.head("big")
    store.fetch("big", tmp_path / "deep" / "out")
    assert (tmp_path / "deep" / "out").read_bytes() == b"x" * 100_000
    with pytest.raises(OverwriteRefused, match="big"):
        store.put_file("big", tmp_path / "in", if_none_match=True)
    with pytest.raises(InputError, match="missing"):
        store.put_file("other", tmp_path / "absent")


def test_absent_objects_are_named(store: ObjectStore, tmp_path: Path) -> None:
    """Reading what is not there names the key, and leaves no file behind."""
    for key in ("a", "a/b"):
        with pytest.raises(ObjectMissing, match=key):
            store.get(key, limit=10)
    with pytest.raises(ObjectMissing):
        store.fetch("a", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert list(store.list("a")) == []
    assert list(store.keys("")) == []


def test_reading_is_bounded(store: ObjectStore) -> None:
    """An object over the limit is refused."""
    store.put("a", b"12345")
    with pytest.raises(InputError, match="too large"):
        store.get("a", limit=4)


def test_creation_happens_once(store: ObjectStore) -> None:
    """A conditional creation refuses to replace, and the first content stays."""
    store.put("a", b"1", if_none_match=True)
    with pytest.raises(OverwriteRefused, match="a: object exists"):
        store.put("a", b"2", if_none_match=True)
    assert store.get("a", limit=1) == b"1"


def test_replacing_needs_the_present_etag(store: ObjectStore) -> None:
    """A compare-and-set succeeds on the etag read, and refuses any other or none."""
    with pytest.raises(PointerMoved, match="no object"):
        store.put("a", b"1", if_match=digest.of_bytes(b"0"))
    first = store.put("a", b"1")
    second = store.put("a", b"2", if_match=first.etag)
    with pytest.raises(PointerMoved, match="Read it again"):
        store.put("a", b"3", if_match=first.etag)
    assert store.head("a") == second
    with pytest.raises(InputError, match="one condition"):
        store.put("a", b"3", if_match=second.etag, if_none_match=True)


def test_listing_is_by_prefix_and_sorted(store: ObjectStore) -> None:
    """All keys with a prefix come in order, whether it ends at a folder or within a name."""
    for key in ("b/2", "b/10", "b/x/1", "bc", "a"):
        store.put(key, key.encode())
    assert [item.key for item in store.list("b")] == ["b/10", "b/2", "b/x/1", "bc"]
    assert [item.key for item in store.list("b/")] == ["b/10", "b/2", "b/x/1"]
    assert [item.key for item in store.list("b/x/1")] == ["b/x/1"]
    assert list(store.keys("")) == ["a", "b/10", "b/2", "b/x/1", "bc"]
    assert all(item.etag == digest.of_bytes(item.key.encode()) for item in store.list(""))


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "..",
        "a/../b",
        ".a",
        "a/.b",
        "-a",
        "a b",
        "ä",
        "a\0",
        "a\n",
        "x" * 2000,
    ],
)
def test_keys_cannot_leave_the_store(store: ObjectStore, key: str) -> None:
    """Every operation refuses a key that is not a path of plain segments."""
    for act in (
        lambda: store.put(key, b""),
        lambda: store.get(key, limit=1),
        lambda: store.head(key),
        lambda: store.delete(key),
    ):
        with pytest.raises(InputError, match="not an object key"):
            act()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(key=st.text(max_size=30))
def test_any_text_is_a_safe_key_or_refused(tmp_path: Path, key: str) -> None:
    """Whatever text comes, its path lies below the root."""
    try:
        path = (tmp_path / check_key(key)).resolve()
    except InputError:
        return
    assert path.is_relative_to(tmp_path)
    assert path != tmp_path


_RACE = """
import sys
from pathlib import Path
from contracts.base.errors import CaissonError
from contracts.objects.folder import FolderStore
store = FolderStore(Path(sys.argv[1]))
sys.stdin.readline()
won = 0
for n in range(40):
    try:
        store.put(f"one/{n}", sys.argv[2].encode(), if_none_match=True)
        won += 1
    except CaissonError:
        pass
done = 0
while done < 40:
    present = store.head("counter")
    number = int(store.get("counter", limit=20))
    try:
        if present.etag == store.head("counter").etag:
            store.put("counter", str(number + 1).encode(), if_match=present.etag)
            done += 1
    except CaissonError:
        pass
print(won)
"""


def test_racing_writers_have_one_winner(tmp_path: Path) -> None:
    """Of several processes one creates each key, and no compare-and-set is lost."""
    FolderStore(tmp_path).put("counter", b"0")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACE, str(tmp_path), str(name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    wins = [int(racer.communicate(timeout=60)[0]) for racer in racers]
    assert sum(wins) == 40
    assert FolderStore(tmp_path).get("counter", limit=20) == b"120"


def test_links_in_the_folder_are_no_objects(tmp_path: Path) -> None:
    """A link planted in the folder is never followed."""
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "a").symlink_to(tmp_path / "secret")
    store = FolderStore(tmp_path / "objects")
    assert store.head("a") is None
    assert list(store.list("")) == []
    with pytest.raises(ObjectMissing):
        store.get("a", limit=10)


def test_a_key_below_an_object_is_a_clear_message(tmp_path: Path) -> None:
    """Where an object is in the way of a folder, the write says so and leaves nothing."""
    store = FolderStore(tmp_path)
    store.put("a", b"1")
    with pytest.raises(UnavailableError, match="cannot be written"):
        store.put("a/b", b"2")
    assert list(store.keys("")) == ["a"]
