"""Processes that are killed while they write leave the old file or the new one, none torn."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

# One process loads everything once; its children write, and are killed at a random moment.
CODE = """
import json, os, random, signal, sys, time, warnings
from pathlib import Path
import numpy as np
import maxmargin as mm
from maxmargin.data import convert, read_svmlight, write_svmlight

folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
X = rng.normal(size=(2, 300, 200))
y = np.where(X[..., 0] > 0, 1, -1)
models = [mm.SVC().fit(X[k], y[k]) for k in range(2)]
words = [mm.SVC(kernel="linear").fit(X[k], np.where(y[k] > 0, "yes", "no")) for k in range(2)]
linear = [mm.LinearSVC().fit(X[k], y[k]) for k in range(2)]
warnings.simplefilter("ignore")  # that labels are words
for k in range(2):
    (folder / f"source {k}.csv").write_text("".join(
        ",".join(f"{value:.6f}" for value in row) + f",{label}\\n"
        for row, label in zip(X[k][:60, :40], y[k])
    ))
    write_svmlight(folder / f"rows {k}.svm", X[k][:60, :40], y[k][:60])

WRITERS = {
    "model.mmg": (lambda k, path: mm.save(models[k], path), lambda path: mm.load(path)),
    "svm.model": (lambda k, path: mm.files.save_libsvm(models[k], path), mm.files.load_libsvm),
    "words.model": (  # in turn with labels that are words and without
        lambda k, path: mm.files.save_libsvm((words[0], models[1])[k], path), mm.files.load_libsvm),
    "linear.model": (
        lambda k, path: mm.files.save_liblinear(linear[k], path), mm.files.load_liblinear),
    "rows.svm": (lambda k, path: write_svmlight(path, X[k], y[k]), read_svmlight),
    "table.svm": (lambda k, path: convert(folder / f"source {k}.csv", path), read_svmlight),
    "rows.csv": (lambda k, path: convert(folder / f"rows {k}.svm", path), None),
}

def versions(name, write):
    found = []
    for k in range(2):
        write(k, folder / name)
        found.append((folder / name).read_bytes())
    assert found[0] != found[1], name
    return found

written = {}
for name, (write, load) in list(WRITERS.items()):
    started = time.monotonic()
    written[name] = versions(name, write)
    WRITERS[name] = write, load, (time.monotonic() - started) / 2

source, seen = random.Random(seed), {name: set() for name in WRITERS}
leftovers = 0
for number in range(kills):
    name = list(WRITERS)[number % len(WRITERS)]
    write, load, seconds = WRITERS[name]
    child = os.fork()
    if child == 0:
        for k in range(10**6):
            write(k % 2, folder / name)
        os._exit(1)
    time.sleep(source.uniform(0, 4 * seconds))
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), f"{name}: the writer ended by itself"
    content = (folder / name).read_bytes()
    assert content in written[name], f"{name} is torn after kill {number}"
    seen[name].add(written[name].index(content))
    found = None if load is None else load(folder / name)
    if name == "words.model":
        expected = (words[0], models[1])[written[name].index(content)]
        assert found.classes_.tolist() == expected.classes_.tolist()
    drafts = [each for each in os.listdir(folder) if each.endswith(".part")]
    leftovers += len(drafts)
    write(0, folder / name)
    left = [each for each in os.listdir(folder) if each.endswith(".part")]
    assert not left, f"left after the next save: {left}"
print(json.dumps({"leftovers": leftovers, "seen": {k: len(v) for k, v in seen.items()}}))
"""


def kill_writers(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill so many writers; return how many versions were seen of each file."""
    ran = subprocess.run(
        [sys.executable, "-c", CODE, str(folder), str(kills), str(seed)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["leftovers"] > 0  # some were killed while they wrote
    seen: dict[str, int] = found["seen"]
    return seen


@pytest.mark.wide
def test_fifty_kills(tmp_path: Path) -> None:
    kill_writers(tmp_path, kills=50, seed=0)


@pytest.mark.full
def test_a_thousand_kills(tmp_path: Path) -> None:
    assert set(kill_writers(tmp_path, kills=1000, seed=1).values()) == {2}
