"""What is signed: an in-toto statement that binds a package to what it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.base import canonical
from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import InputError

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://caisson.dev/release/v0"
PAYLOAD = "application/vnd.in-toto+json"


@dataclass(frozen=True)
class ReleaseFacts:
    """What a signature binds to a package.

    Attributes:
        set_digest: Digest of the files under ``/model``.
        contract: Contract of the training data, such as ``nyc/flights@1.0.0``.
        schema_hash: Schema hash of that contract.
        feature_version: Bundle the model was trained on.
        git_commit: Commit of the code that ran the gate.
        runtime_version: Digest of the code inside the package.
        achieved_level: Level the audit reports; empty if it reports none.
        reports: Digest of each stage's report, by stage.
    """

    set_digest: Digest
    contract: str = ""
    schema_hash: str = ""
    feature_version: str = ""
    git_commit: str = ""
    runtime_version: str = ""
    achieved_level: str = ""
    reports: Mapping[str, Digest] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "reports": dict(self.reports)}

    @classmethod
    def from_dict(cls, data: Any) -> ReleaseFacts:
        """Read plain data back.

        Raises:
            InputError: If a field is missing, unknown or malformed.
        """
        if not isinstance(data, Mapping) or set(data) != set(cls.__dataclass_fields__):
            raise InputError("fields of the signed facts do not match")
        reports = data["reports"]
        texts = [value for name, value in data.items() if name != "reports"]
        if not isinstance(reports, Mapping) or not all(isinstance(item, str) for item in texts):
            raise InputError("signed facts are malformed")
        return cls(
            **{
                **data,
                "set_digest": digests.parse(data["set_digest"], where="signed facts"),
                "reports": {
                    stage: digests.parse(value, where="signed facts")
                    for stage, value in reports.items()
                },
            }
        )


@dataclass(frozen=True)
class Statement:
    """An in-toto statement about one package."""

    name: str
    subject: Digest
    facts: ReleaseFacts

    def dumps(self) -> bytes:
        """Return the bytes that are signed."""
        return canonical.dumps(
            {
                "_type": TYPE,
                "subject": [
                    {"name": self.name, "digest": {"sha256": self.subject.removeprefix("sha256:")}}
                ],
                "predicateType": PREDICATE,
                "predicate": self.facts.to_dict(),
            }
        )


def parse(data: bytes) -> Statement:
    """Read signed bytes back.

    Raises:
        InputError: If they are no statement of ours about exactly one package.
    """
    content = canonical.loads(data, limit=2**20, where="signed statement")
    if not isinstance(content, Mapping) or content.get("_type") != TYPE:
        raise InputError("not an in-toto statement", expected=TYPE)
    if content.get("predicateType") != PREDICATE:
        raise InputError(
            "statement of another kind",
            expected=PREDICATE,
            found=repr(content.get("predicateType"))[:100],
        )
    subjects = content.get("subject")
    if not isinstance(subjects, list) or len(subjects) != 1 or not isinstance(subjects[0], Mapping):
        raise InputError("statement is not about exactly one package")
    name, values = subjects[0].get("name"), subjects[0].get("digest")
    if not isinstance(name, str) or not isinstance(values, Mapping) or set(values) != {"sha256"}:
        raise InputError("subject of the statement is malformed")
    subject = digests.parse(f"sha256:{values['sha256']}", where="subject of the statement")
    return Statement(name, subject, ReleaseFacts.from_dict(content.get("predicate")))
