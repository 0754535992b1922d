"""The one exception tree of the project, and what each branch means to a caller.

CaissonError                  code, expected, found, location, remedy
├── InputError                a file or message from outside is malformed
│   ├── ContractInvalid, ManifestInvalid, BundleInvalid, ReportInvalid
├── IntegrityError            bytes are not what was promised
│   ├── DigestMismatch, SignatureInvalid, CorruptLog
├── UnavailableError          something could not be reached
│   ├── RegistryUnavailable, SourceUnavailable, DeviceUnavailable, ServerUnavailable
│   ├── PackageMissing
├── RefusedError              a rule forbids the act
│   ├── OverwriteRefused, ReleaseRefused, SwapRefused, FuseOpen, PointerMoved
└── RuntimeFault              serving; each carries its HTTP status
    ├── LoadFailed(stage), OutOfMemory, Overloaded, RequestInvalid, ModelUnknown

Commands exit 1 for RefusedError and IntegrityError, 2 for every other branch.
"""

from __future__ import annotations

import sys


class CaissonError(Exception):
    """The root of all errors the project raises on purpose.

    Attributes:
        code: Stable identifier of the kind of error, in kebab case.
        expected: What should have been there, in words.
        found: What was there instead.
        location: The file, column, stage or address concerned.
        remedy: What the reader should do next.
        exit_status: Exit status of a command that ends with this error.
    """

    code = "error"
    exit_status = 2

    def __init__(
        self,
        message: str,
        *,
        expected: str = "",
        found: str = "",
        location: str = "",
        remedy: str = "",
    ) -> None:
        """Keep the parts apart, so that people and machines can both read them."""
        self.message = message
        self.expected = expected
        self.found = found
        self.location = location
        self.remedy = remedy
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        parts = [f"{self.location}: {self.message}" if self.location else self.message]
        if self.expected or self.found:
            parts.append(f"expected {self.expected or 'nothing'}, got {self.found or 'nothing'}")
        text = "; ".join(parts)
        if self.remedy:
            text = f"{text.rstrip('.')}. {self.remedy}"
        return text

    def to_dict(self) -> dict[str, str]:
        """Return the parts as plain data, for ``--json`` and for child processes."""
        return {
            "code": self.code,
            "message": self.message,
            "expected": self.expected,
            "found": self.found,
            "location": self.location,
            "remedy": self.remedy,
        }


class InputError(CaissonError):
    """A file, message or option from outside is malformed."""

    code = "input-invalid"


class ContractInvalid(InputError):
    """A contract file breaks the contract specification."""

    code = "contract-invalid"


class ManifestInvalid(InputError):
    """A model package's manifest or settings are malformed."""

    code = "manifest-invalid"


class BundleInvalid(InputError):
    """A feature bundle or feature definition is malformed."""

    code = "bundle-invalid"


class ReportInvalid(InputError):
    """A stored report or record cannot be read back."""

    code = "report-invalid"


class IntegrityError(CaissonError):
    """Bytes are not what was promised."""

    code = "integrity"
    exit_status = 1


class DigestMismatch(IntegrityError):
    """Content does not hash to the digest it was asked for by."""

    code = "digest-mismatch"


class SignatureInvalid(IntegrityError):
    """A signature is missing, wrong, or made by a key that is not trusted."""

    code = "signature-invalid"


class CorruptLog(IntegrityError):
    """A hash-chained log does not link up."""

    code = "log-corrupt"


class UnavailableError(CaissonError):
    """Something that is needed could not be reached."""

    code = "unavailable"


class RegistryUnavailable(UnavailableError):
    """A package registry or object store could not be reached."""

    code = "registry-unavailable"


class SourceUnavailable(UnavailableError):
    """A data source could not be read."""

    code = "source-unavailable"


class DeviceUnavailable(UnavailableError):
    """A device that a check needs is not on this machine."""

    code = "device-unavailable"


class ServerUnavailable(UnavailableError):
    """A local server or target did not start or does not answer."""

    code = "server-unavailable"


class PackageMissing(UnavailableError):
    """A Python package that is needed is not installed."""

    code = "package-missing"

    @classmethod
    def of(cls, cause: ImportError) -> PackageMissing:
        """Say what an import that failed means for who installed this."""
        return cls(
            f"Python package {cause.name or 'unknown'} cannot be imported: {cause}",
            location=sys.prefix,
            remedy="Run `make install`; if that says it is up to date, `make clean` first.",
        )


class RefusedError(CaissonError):
    """A rule forbids the act."""

    code = "refused"
    exit_status = 1


class OverwriteRefused(RefusedError):
    """Something published may never be replaced."""

    code = "overwrite-refused"


class ReleaseRefused(RefusedError):
    """The gate or a policy does not let a package pass."""

    code = "release-refused"


class SwapRefused(RefusedError):
    """A slot cannot be switched in its present state."""

    code = "swap-refused"


class FuseOpen(RefusedError):
    """The circuit breaker of a contract and consumer is open; nothing was read."""

    code = "fuse-open"


class PointerMoved(RefusedError):
    """A compare-and-set found another value than the caller expected."""

    code = "pointer-moved"


class RuntimeFault(CaissonError):
    """Serving failed; ``http_status`` is what a client is told."""

    code = "runtime-fault"
    http_status = 500


class LoadFailed(RuntimeFault):
    """A model could not be loaded; ``stage`` names which of the six stages failed."""

    code = "load-failed"
    http_status = 503

    def __init__(self, message: str, *, stage: str, **parts: str) -> None:
        """Remember the stage and show it in front of the message."""
        self.stage = stage
        super().__init__(f"load stage {stage}: {message}", **parts)


class OutOfMemory(RuntimeFault):
    """Memory for a model or request does not suffice."""

    code = "out-of-memory"
    http_status = 503


class Overloaded(RuntimeFault):
    """The queue is full; the client should come back later."""

    code = "overloaded"
    http_status = 429


class RequestInvalid(RuntimeFault):
    """A request does not fit the model's declared inputs."""

    code = "request-invalid"
    http_status = 400


class ModelUnknown(RuntimeFault):
    """No loaded model has the name asked for."""

    code = "model-unknown"
    http_status = 404
