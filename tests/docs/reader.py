"""A reader of the documents: types their commands in a home folder of its own, in order."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.docs import service
from tests.docs.documents import Command

_PATIENCE_S = 600.0


@dataclass
class Reader:
    """Who reads, where, and what was learned so far.

    Attributes:
        root: The checkout.
        home: The home folder of all commands.
        words: What the documents' words in capitals stand for.
    """

    root: Path
    home: Path
    words: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a person who activated the installation."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("CAISSON_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        return {**kept, **self.words, "PATH": path, "CAISSON_HOME": str(self.home)}

    def fill(self, text: str) -> str:
        """Put what was learned in place of the words in capitals."""
        for word, meaning in self.words.items():
            text = re.sub(rf"(?<![$\w]){word}\b", meaning, text)
        return text

    def run(self, script: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a script in a shell and return how it ended."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.fill(script)],
            cwd=folder or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )

    def obey(self, command: Command) -> str:
        """Run a command, demand the exit status it is documented to have, return its stdout."""
        with self._callers(command):
            done = self.run(command.text)
        said = f"{command.where}: {command.text}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        assert done.returncode == command.status, said
        return done.stdout

    def ask(self, *arguments: str) -> Any:
        """Return what a reading command says in JSON."""
        done = self.run(f"caisson {' '.join(arguments)} --json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def watch(self, command: Command, act: Callable[[str], None]) -> None:
        """Run a command that goes on until Ctrl-C; act on its first lines, then press Ctrl-C."""
        process = subprocess.Popen(
            command.words, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            act(process.stdout.readline() + process.stdout.readline())
            process.send_signal(signal.SIGINT)
            assert process.wait(_PATIENCE_S) == 130
        finally:
            process.kill()
            process.communicate()

    @contextlib.contextmanager
    def _callers(self, command: Command) -> Iterator[None]:
        """Have the model asked while it is deployed: a canary needs callers."""
        if command.words[:2] != ["caisson", "deploy"]:
            yield
            return
        cases = self.root / "model_packages/published/flight-delay/test_cases"
        with service.asked(self.words["URL"], cases / "valid_input_01.json"):
            yield
