"""Writes `bodies/` anew from the tables beside this file.

    python3 tests/cases/make_bodies            write the folder
    python3 tests/cases/make_bodies --check    is the folder what the tables say?

The verdicts are written down by hand in the tables, from the contract's
section 1. Nothing here reads JSON: a table that asked a parser would agree with
that parser's mistakes.
"""

import json
import sys
from pathlib import Path

import grammar
import ids
from envelope import Case

FOLDER = Path(__file__).resolve().parent.parent / "bodies"
REASONS = {"malformed", "absent", "unusable"}


def manifest(cases: list[Case]) -> bytes:
    """One line a case, so that a change of one is a change of one line."""
    lines = [
        json.dumps({"file": case.file, "id": case.id, "reason": case.reason, "why": case.why})
        for case in cases
    ]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode("ascii")


def files() -> dict[str, bytes]:
    cases = sorted([*ids.cases(), *grammar.cases()], key=lambda case: case.file)
    names = [case.file for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"two cases of one name: {twice}"
    for case in cases:
        assert (case.id is None) != (case.reason is None), case.file
        assert case.reason is None or case.reason in REASONS, case.file
    return {case.file: case.body for case in cases} | {"manifest.json": manifest(cases)}


def main() -> None:
    wanted = files()
    found = {path.name: path.read_bytes() for path in FOLDER.glob("*")}
    differing = sorted(
        name for name in wanted | found if wanted.get(name) != found.get(name)
    )
    if sys.argv[1:] == ["--check"]:
        if differing:
            sys.exit(
                f"tests/cases/bodies differs from its tables in {', '.join(differing)}: "
                "run python3 tests/cases/make_bodies"
            )
        return
    for name in differing:
        if name in wanted:
            (FOLDER / name).write_bytes(wanted[name])
        else:
            (FOLDER / name).unlink()
    print(f"{len(wanted) - 1} bodies, {len(differing)} files changed")


main()
