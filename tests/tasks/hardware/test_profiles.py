"""Device profiles are complete, sourced, and refused where they are not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError
from tasks.hardware import kernels, profiles


@pytest.fixture(scope="module")
def shipped(root: Path) -> dict[str, profiles.Profile]:
    return profiles.load_all(root / "infra/hardware")


def test_the_demanded_devices_have_profiles(shipped: dict[str, profiles.Profile]) -> None:
    """The devices of the source document are there, each with at least twelve figures."""
    wanted = {"a100", "a800", "v100", "h100", "h200", "rtx4090", "jetson-orin", "cpu-x86-64"}
    assert wanted <= set(shipped)
    assert len(profiles.DIMENSIONS) >= 12
    for profile in shipped.values():
        assert set(profile.dimensions) == set(profile.sources) == set(profiles.DIMENSIONS)
        assert 0 < profile.usable_mb < profile.memory_mb


def test_devices_differ_where_they_differ(shipped: dict[str, profiles.Profile]) -> None:
    """A800 is an A100 with a slower link; V100 has no bfloat16 and no CUDA 13."""
    a100, a800, v100 = (shipped[name] for name in ("a100", "a800", "v100"))
    assert a800.dimensions["peer_link_gbs"] < a100.dimensions["peer_link_gbs"]
    assert a800.dimensions["fp32_tflops"] == a100.dimensions["fp32_tflops"]
    assert "bfloat16" not in v100.types
    assert v100.toolchain["last_cuda"].startswith("12.")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "gpu"', 'kind = "fpga"', "kind: expected one of cpu, gpu, soc"),
        ("format_version = 0", "format_version = 9", "format_version: expected 0, got 9"),
        ('vendor = "NVIDIA"', "", "vendor is missing"),
        ('vendor = "NVIDIA"', "vendor = 3", "vendor is not text"),
        ("[sources]", "[sources]\nextra = 1\n[more]", "more is unknown"),
        ("value = 81920", "value = -1", "dimensions.memory_mb: -1 is not int >= 0"),
        ("value = 81920", 'value = "80 GB"', "dimensions.memory_mb: '80 GB' is not int >= 0"),
        ('value = 81920, source = "datasheet"', "value = 81920", "expected a value and a source"),
        ('value = 81920, source = "datasheet"', 'value = 81920, source = "hearsay"', "not listed"),
        ("l2_cache_mb", "l9_cache_mb", "dimensions.l9_cache_mb is unknown"),
        ('types = ["float64"', 'types = [1, "float64"', "types is not a list of texts"),
        ('source = "toolkit"', 'source = "hearsay"', "toolchain: its source is not listed"),
        ('first_cuda = "11.0"\n', "", "toolchain: expected first_cuda, last_cuda, source"),
        ("[toolchain]", "[toolchain", "not readable as TOML"),
    ],
)  # fmt: skip
def test_a_spoiled_profile_is_refused(root: Path, old: str, new: str, said: str) -> None:
    """Missing, unknown or unsourced figures are named."""
    text = (root / "infra/hardware/a100.toml").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(InputError) as caught:
        profiles.parse(text.replace(old, new, 1).encode(), where="a100.toml")
    assert said in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_as_input(data: bytes) -> None:
    """Whatever a profile file holds, the only error is InputError."""
    with pytest.raises(InputError):
        profiles.parse(data)


def test_a_folder_needs_profiles_named_after_their_files(root: Path, tmp_path: Path) -> None:
    """An empty folder and a misnamed file are refused."""
    with pytest.raises(InputError, match="no hardware profiles"):
        profiles.load_all(tmp_path)
    data = (root / "infra/hardware/a100.toml").read_bytes()
    (tmp_path / "b100.toml").write_bytes(data)
    assert tomllib.loads(data.decode())["name"] == "a100"
    with pytest.raises(InputError, match="misnamed"):
        profiles.load_all(tmp_path)


def test_kernels_are_looked_up_by_operator_set_and_types(root: Path) -> None:
    """Gemm in half precision runs on CUDA and not on the CPU; text never runs on CUDA."""
    table = kernels.load(root / "infra/hardware/kernels.json")
    both = ("CUDAExecutionProvider", "CPUExecutionProvider")

    def place(operator: str, opset: int, *types: str, domain: str = "") -> str:
        node = kernels.NodeKind(domain, operator, frozenset(types), 1)
        return table.place(both, node, opset)

    assert place("Gemm", 17, "float16") == both[0]
    assert place("Gemm", 12, "bfloat16") == ""
    assert place("Gemm", 13, "bfloat16") == both[0]
    assert place("Concat", 17, "string") == both[1]
    assert place("LabelEncoder", 3, "string", "float32", domain="ai.onnx.ml") == both[1]
    assert place("Gelu", 17, "float32") == ""
    assert place("Constant", 17, "float32") == both[0]
    assert place("Mystery", 1, domain="com.example") == ""


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"providers":{"a":{}}}',
        '{"providers":{"a":{"version":"1","operators":{"X":[[1]]}}}}',
    ],
)
def test_a_malformed_kernel_table_is_refused(tmp_path: Path, text: str) -> None:
    """A kernel table without its parts is InputError."""
    path = tmp_path / "kernels.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        kernels.load(path)


def test_the_cpu_table_is_the_one_of_the_installed_runtime(root: Path) -> None:
    """The table was generated from the pinned onnxruntime and says so."""
    from importlib.metadata import version

    table = kernels.load(root / "infra/hardware/kernels.json")
    assert table.versions["CPUExecutionProvider"] == version("onnxruntime")
