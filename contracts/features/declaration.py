"""Reads feature definitions from their files, strictly, and finds what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from contracts.base import canonical, digest, files
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid
from contracts.features.definition import (
    MOMENTS,
    TRANSFORMS,
    Feature,
    FeatureDefinition,
    Input,
    Join,
    KeyColumn,
    Kind,
    Label,
    Moment,
    Reference,
)
from contracts.reading import Problem, Reader

_LIMIT = 2**20
_MOST = 1000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DEFINITION = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*){2}")
_CONTRACT = re.compile(r"[a-z0-9_-]+/[a-z0-9_-]+@[0-9]+\.[0-9]+\.[0-9]+")
_SUFFIX = ".features.json"


def load(root: Path, name: str) -> FeatureDefinition:
    """Read the published definition of a name.

    Args:
        root: Folder of published contracts.
        name: ``owner/source/name``.

    Raises:
        BundleInvalid: If the name or the file is malformed, or the file defines another name.
        InputError: If there is no such file.
    """
    if not _DEFINITION.fullmatch(name):
        raise BundleInvalid(
            "not the name of a feature definition",
            expected="owner/source/name, such as nyc/flights/arrival-delay",
            found=repr(name)[:200],
        )
    path = root / f"{name}{_SUFFIX}"
    definition = parse(files.read_bounded(path, _LIMIT), where=str(path))
    if definition.name != name:
        raise BundleInvalid(
            "definition lies under another name",
            expected=name,
            found=definition.name,
            location=str(path),
        )
    return definition


def names(root: Path) -> list[str]:
    """Return the names of all published definitions, sorted."""
    found = root.glob(f"*/*/*{_SUFFIX}")
    return sorted(path.relative_to(root).as_posix().removesuffix(_SUFFIX) for path in found)


def parse(data: bytes, *, where: str = "feature definition") -> FeatureDefinition:
    """Read a definition strictly.

    Raises:
        BundleInvalid: With every problem, if a field is missing, unknown or malformed, a column's
            input is unknown, or a column known only later is read by anything but the label.
    """
    content = canonical.loads(data, limit=_LIMIT, where=where)
    problems: list[Problem] = []
    reader = Reader(content, "", problems)
    definition = _definition(reader, digest.of_json(content), problems)
    reader.finish()
    if not problems:
        problems += [*_structure(definition), *_foreign(definition), *_leaks(definition)]
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise BundleInvalid(f"{len(problems)} problems:\n{lines}", location=where)
    return definition


def _definition(reader: Reader, own: Digest, problems: list[Problem]) -> FeatureDefinition:
    reader.integer("format_version", 0, 0)
    reader.text("description", default="")
    return FeatureDefinition(
        name=_named(reader, "name", _DEFINITION, "owner/source/name"),
        title=reader.text("title"),
        inputs=tuple(_input(item) for item in reader.children("inputs", limit=20)),
        event_time=_moment(reader.child("event_time")),
        key=tuple(_key(item) for item in reader.children("key", limit=20)),
        features=tuple(_feature(item) for item in reader.children("features", limit=_MOST)),
        label=_label(reader.child("label")),
        known_later=frozenset(_references_of(reader, "known_later", problems)),
        digest=own,
    )


def _input(reader: Reader) -> Input:
    join = cast("Join", reader.choice("join", ("spine", "asof", "lookup")))
    match = tuple(_match(item) for item in reader.children("match", limit=10))
    found = Input(
        name=_named(reader, "name"),
        contract=_named(reader, "contract", _CONTRACT, "owner/source@1.0.0"),
        join=join,
        match=match,
        time=reader.text("time") if join == "asof" else "",
        maximum_age_minutes=(
            reader.integer("maximum_age_minutes", 1, 10**7) if join == "asof" else 0
        ),
    )
    if (join == "spine") != (not match):
        reader.wrong("match", "columns to match, except on the spine", f"{len(match)} of them")
    reader.finish()
    return found


def _match(reader: Reader) -> tuple[str, Reference]:
    pair = (reader.text("column"), _reference(reader, "equals"))
    reader.finish()
    return pair


def _moment(reader: Reader) -> Moment:
    transform = reader.choice("transform", tuple(MOMENTS))
    moment = Moment(_named(reader, "name"), transform, _columns(reader, MOMENTS[transform]))
    reader.finish()
    return moment


def _key(reader: Reader) -> KeyColumn:
    column = KeyColumn(_named(reader, "name"), _reference(reader, "column"))
    reader.finish()
    return column


def _feature(reader: Reader) -> Feature:
    transform = reader.choice("transform", tuple(TRANSFORMS))
    kinds = ("numeric", "categorical") if transform == "value" else ("numeric",)
    feature = Feature(
        name=_named(reader, "name"),
        kind=cast("Kind", reader.choice("kind", kinds)),
        transform=transform,
        columns=_columns(reader, TRANSFORMS[transform]),
        description=reader.text("description", default=""),
    )
    reader.finish()
    return feature


def _label(reader: Reader) -> Label:
    above = reader.number("above")
    if above is None:
        reader.wrong("above", "a number", "nothing")
    label = Label(_named(reader, "name"), _reference(reader, "column"), float(above or 0))
    reader.finish()
    return label


def _named(reader: Reader, field: str, pattern: re.Pattern[str] = _NAME, form: str = "") -> str:
    text = reader.text(field)
    if text and not pattern.fullmatch(text):
        reader.wrong(field, form or "lower-case letters, digits and underscores", repr(text)[:80])
    return text


def _reference(reader: Reader, field: str) -> Reference:
    text = reader.text(field)
    source, dot, column = text.partition(".")
    if text and not (dot and source and column):
        reader.wrong(field, "input.column", repr(text)[:80])
    return Reference(source, column)


def _columns(reader: Reader, count: int) -> tuple[Reference, ...]:
    texts = reader.items("columns", limit=10)
    good = [item for item in texts if isinstance(item, str) and all(item.partition("."))]
    if len(good) != count or len(texts) != count:
        reader.wrong("columns", f"{count} of the form input.column", repr(texts)[:80])
    return tuple(_split(text) for text in good)


def _references_of(reader: Reader, field: str, problems: list[Problem]) -> Iterator[Reference]:
    for text in reader.texts(field):
        if not all(text.partition(".")):
            problems.append(Problem(reader.at(field), "input.column", repr(text)[:80]))
        yield _split(text)


def _split(text: str) -> Reference:
    source, _, column = text.partition(".")
    return Reference(source, column)


def _structure(definition: FeatureDefinition) -> Iterator[Problem]:
    sources = [item.name for item in definition.inputs]
    spines = [item.name for item in definition.inputs if item.join == "spine"]
    if len(spines) != 1:
        yield Problem("inputs", "exactly one spine", ", ".join(spines) or "none")
    prefix = definition.name.rpartition("/")[0]
    if any(item.join == "spine" and item.source != prefix for item in definition.inputs):
        yield Problem("name", "the name of the spine's source and its own", definition.name)
    if not definition.features:
        yield Problem("features", "at least one feature", "none")
    columns = [item.name for item in definition.features + definition.key]
    columns += [definition.event_time.name, definition.label.name]
    for field, given in (("inputs", sources), ("columns", columns)):
        twins = sorted({name for name in given if given.count(name) > 1})
        if twins:
            yield Problem(field, "each name once", f"{', '.join(twins)} more than once")


def _foreign(definition: FeatureDefinition) -> Iterator[Problem]:
    known = {item.name for item in definition.inputs}
    read = {reference for _, references in definition.readers() for reference in references}
    for reference in sorted({*read, definition.label.column, *definition.known_later}):
        if reference.input not in known:
            yield Problem(str(reference), f"an input out of {', '.join(sorted(known))}", "another")
    spines = {item.name for item in definition.inputs if item.join == "spine"}
    for name, references in [("label", (definition.label.column,)), *definition.anchors()]:
        for reference in references:
            if reference.input not in spines:
                yield Problem(name, "a column of the spine", str(reference))


def _leaks(definition: FeatureDefinition) -> Iterator[Problem]:
    later = definition.known_later | {definition.label.column}
    for name, references in definition.readers():
        for reference in references:
            if reference in later:
                yield Problem(
                    name,
                    "columns known at the moment of prediction",
                    f"{reference}, which is known only later",
                    "Read another column, or take the feature out.",
                )
