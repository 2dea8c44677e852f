"""The wheel, installed into an empty place; the README's and the repository's examples."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import babelqueue_guard

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, by way of the source distribution: so both are whole."""
    out = tmp_path_factory.mktemp("dist")
    # The build's own requirements are in this environment.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the wheel and what it asks for, and nothing else."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=True)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return python


def test_the_wheel_holds_what_it_runs(wheel: Path) -> None:
    assert wheel.name == f"babelqueue_guard-{babelqueue_guard.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    assert {
        f"babelqueue_guard/{name}"
        for name in (
            "py.typed",
            "driver.wat",
            "shim.wat",
            "artifacts/plain.core.wasm",
            "artifacts/claiming.core.wasm",
            "artifacts/renew.lua",
            "artifacts/release.lua",
        )
    } <= names
    assert any(name.endswith("licenses/LICENSE-MIT") for name in names)
    assert not any("test" in name for name in names)


def test_the_installed_package_runs_by_itself(python: Path, tmp_path: Path) -> None:
    expected = (ROOT / "examples" / "embed.out").read_text()
    assert run(python, ROOT / "examples" / "embed.py", cwd=tmp_path) == expected
    listed = run(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
    names = {line.split("==")[0].replace("_", "-") for line in listed.split()}
    assert names - {"pip", "setuptools"} == {"babelqueue-guard", "wasmtime"}


def test_without_redis_py_its_store_says_what_is_missing(python: Path, tmp_path: Path) -> None:
    failed = subprocess.run(
        [python, "-c", "import babelqueue_guard.redis"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "babelqueue-guard[redis]" in failed.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path, tmp_path: Path) -> None:
    assert run(sys.executable, example, cwd=tmp_path) == example.with_suffix(".out").read_text()


def test_the_readmes_example(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    example = tmp_path / "example.py"
    example.write_text(found[1], "utf-8")
    assert run(sys.executable, example) == found[2]


def test_all_that_the_readme_imports_is_there() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for line in re.findall(r"^from babelqueue\S* import .*$", readme, re.MULTILINE):
        exec(line, {})


def test_one_version() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{babelqueue_guard.__version__}"\n' in project


def test_all_names_are_exported() -> None:
    for name in babelqueue_guard.__all__:
        assert getattr(babelqueue_guard, name)
