"""A disk that is full or read-only: the old file stays, and the error names it."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

# Everything that writes, tried on a disk in trouble: first small, while there is room, then large.
CODE = """
import json, os, subprocess, sys, warnings
from pathlib import Path
import numpy as np
from click.testing import CliRunner
import maxmargin as mm
from maxmargin.cli import main
from maxmargin.data import write_svmlight

disk, safe, trouble, limit = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)

def rows(n, d):
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] > 0, 1, -1)

def table(name, n, d):
    X, y = rows(n, d)
    lines = [",".join(map(str, row)) + f",{sign}" for row, sign in zip(X, y)]
    (safe / name).write_text("\\n".join(lines) + "\\n")

small, large = rows(20, 2), rows(120, 40)
table("small.csv", 20, 2)
table("large.csv", 120, 40)
many = [small, (np.tile(small[0], (1000, 1)), np.tile(small[1], 1000))]
(safe / "rows.csv").write_text("".join(f"{a},{b}\\n" for a, b in many[1][0]))
(safe / "few.csv").write_text("".join(f"{a},{b}\\n" for a, b in small[0]))
models = [mm.SVC().fit(*small), mm.SVC().fit(*large)]
words = [mm.SVC().fit(X, np.where(y > 0, "yes", "no")) for X, y in (small, large)]
linear = [mm.LinearSVC().fit(*small), mm.LinearSVC().fit(*rows(40, 1500))]
tables = [safe / "small.csv", safe / "large.csv"]

def fit(k, path):
    return ["fit", str(tables[k]), "-o", str(path)]

def predict(k, path):
    model, source = safe / "small.mmg", [safe / "few.csv", safe / "rows.csv"][k]
    return ["predict", str(model), str(source), "-o", str(path)]

WRITERS = {
    "model.mmg": lambda k, path: mm.save(models[k], path),
    "svm.model": lambda k, path: mm.files.save_libsvm(models[k], path),
    "words.model": lambda k, path: mm.files.save_libsvm(words[k], path),
    "linear.model": lambda k, path: mm.files.save_liblinear(linear[k], path),
    "rows.svm": lambda k, path: write_svmlight(path, *[small, large][k]),
}
COMMANDS = {"fitted.mmg": fit, "predicted.txt": predict}

def run(words):
    ran = CliRunner().invoke(main, words, prog_name="maxmargin")
    return ran.exit_code, ran.stdout, ran.stderr

assert run(fit(0, safe / "small.mmg"))[0] == 0

def limit_files():
    import resource, signal
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

for name, write in WRITERS.items():
    write(0, disk / name)
for name, command_for in COMMANDS.items():
    code, _, errors = run(command_for(0, disk / name))
    assert code == 0, errors
if trouble == "full":
    with open(disk / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
before = {name: (disk / name).read_bytes() for name in os.listdir(disk)}
if trouble == "read-only":
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
limit_files()
found = {}
for name, write in WRITERS.items():
    try:
        write(1, disk / name)
    except OSError as error:
        found[name] = [type(error).__name__, error.errno, error.filename, str(error)]
    else:
        found[name] = ["nothing", 0, "", ""]
for name, command_for in COMMANDS.items():
    found[name] = run(command_for(1, disk / name))
for name, content in before.items():
    assert (disk / name).read_bytes() == content, f"{name} was changed"
assert sorted(os.listdir(disk)) == sorted(before), os.listdir(disk)
print(json.dumps(found))
"""


def try_all(folder: Path, trouble: str, start: list[str], limit: int = 0) -> None:
    """Write everything with trouble at hand, and judge what is said about it."""
    disk, safe = folder / "small disk, ünïcode", folder / "safe"
    disk.mkdir()
    safe.mkdir()
    words = [*start, sys.executable, "-c", CODE, str(disk), str(safe), trouble, str(limit)]
    ran = subprocess.run(
        [word.replace("DISK", str(disk)) for word in words], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    expected = {"full": errno.ENOSPC, "read-only": errno.EROFS, "limit": errno.EFBIG}[trouble]
    found: dict[str, list[Any]] = json.loads(ran.stdout.splitlines()[-1])
    for name, said in found.items():
        if name in ("fitted.mmg", "predicted.txt"):
            code, _, errors = said
            assert code == 1, (name, said)
            assert str(disk / name) in errors.replace("\n", " "), (name, errors)
            assert "Traceback" not in errors, (name, errors)
        else:
            assert said[1] == expected, (name, said)
            assert said[2] == str(disk / name), (name, said)


def test_files_that_may_not_be_large(tmp_path: Path) -> None:
    try_all(tmp_path, "limit", [], limit=20_000)


@pytest.mark.wide
@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_disks(tmp_path: Path, trouble: str) -> None:
    mount = ["unshare", "--mount", "mount", "-t", "tmpfs", "x", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a disk")
    script = 'mount -t tmpfs -o size=200k x "$0" && exec "$@"'
    try_all(tmp_path, trouble, ["unshare", "--mount", "sh", "-c", script, "DISK"])
