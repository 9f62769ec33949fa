"""./try and ./check, run with a pretended Python: no network, no real installation."""

import ast
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("try", "check", ".ci/run", "tools/environment.sh")
TOOLS = {"sh", "dirname", "readlink", "mkdir", "rm", "mv", "cat", "tail", "head", "ls", "find"} | {
    *("cp", "chmod", "sleep"),  # for the pretended Python
}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the commands are for POSIX shells")

# Makes an environment by copying itself, "installs" by leaving commands that print, and passes
# everything else on to the real Python.
PRETENDED_PYTHON = f"""#!/bin/sh
case "$*" in
"-I -c import venv, ensurepip") [ -z "${{NO_VENV:-}}" ] || exit 1 ;;
"-I -c import pip") ;;
"-I -m venv "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
"-I -m pip install "*)
    echo "$*" >>"$LOG"
    if [ -n "${{PIP_HANGS:-}}" ]; then kill -INT "$PPID"; sleep 1; exit 1; fi
    if [ -n "${{PIP_FAILS:-}}" ]; then echo "no matching distribution"; exit 1; fi
    for name in maxmargin ruff mypy lint-imports pytest; do
        printf '#!/bin/sh\\necho ran %s "$@" in "$(pwd)"\\n[ "$FAILING" != %s ]\\n' \\
            $name $name >"${{0%/*}}/$name"
        chmod +x "${{0%/*}}/$name"
    done ;;
*) exec {shlex.quote(sys.executable)} "$@" ;;
esac
"""


class Tree:
    """A copy of the commands in a folder with a space, a pretended Python, and a poor PATH."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a tree"
        self.bin = folder / "bin"
        self.log = folder / "pip.log"
        self.elsewhere = folder / "elsewhere"
        for new in (self.root / "tools", self.bin, self.elsewhere):
            new.mkdir(parents=True)
        for script in ("try", "check", "tools/environment.sh"):
            shutil.copy(ROOT / script, self.root / script)
        (self.root / "pyproject.toml").write_text("[project]\n")
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)
        self.python = self.bin / "python3.12"
        self.python.write_text(PRETENDED_PYTHON)
        self.python.chmod(0o755)

    def run(
        self, script: str, *arguments: str, path: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "LOG": str(self.log), "FAILING": ""} | variables
        return subprocess.run(
            [str(path or self.root / script), *arguments],
            cwd=self.elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def installations(self) -> Sequence[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS)
def test_syntax_is_plain_sh(script: str) -> None:
    for shell in filter(shutil.which, ("sh", "dash")):
        subprocess.run([shell, "-n", str(ROOT / script)], check=True)
    assert os.access(ROOT / script, os.X_OK) or script == SCRIPTS[-1]  # which the others read


def test_try_installs_once_and_runs_where_it_was_called(tree: Tree) -> None:
    first, second = tree.run("try", "my file.csv", "--seed"), tree.run("try", "my file.csv")
    assert first.returncode == second.returncode == 0
    assert first.stdout == f"ran maxmargin try my file.csv --seed in {tree.elsewhere}\n"
    assert "making .venv" in first.stderr
    assert second.stderr == ""
    assert len(tree.installations()) == 1


def test_only_try_compiles_while_it_installs(tree: Tree) -> None:
    assert "compiling" not in tree.run("check").stderr
    shutil.rmtree(tree.root / ".venv")
    assert "compiling numerical loops" in tree.run("try").stderr
    ran = (tree.root / ".venv" / "install.log").read_text()
    assert ran.startswith("ran maxmargin warm-up in ")


def test_an_installation_is_good_without_compiled_loops(tree: Tree) -> None:
    assert "when they are needed" in tree.run("try", FAILING="maxmargin").stderr
    second = tree.run("try")
    assert (second.returncode, second.stderr) == (0, "")


def test_commands_work_through_a_symlink(tree: Tree) -> None:
    link = tree.elsewhere / "link"
    link.symlink_to(tree.root / "try")
    assert tree.run("try", path=link).returncode == 0
    assert (tree.root / ".venv").is_dir()


def test_check_adds_what_tests_need_and_try_is_content_with_it(tree: Tree) -> None:
    for script in ("try", "check", "try", "check"):
        assert tree.run(script).returncode == 0
    targets = [line.rpartition(" ")[2] for line in tree.installations()]
    assert targets == [".[plot,tables]", ".[test]"]


def test_what_cannot_be_trusted_starts_afresh(tree: Tree) -> None:
    assert tree.run("try", PIP_HANGS="1").returncode != 0
    assert "did not finish: starting afresh" in tree.run("try").stderr
    (tree.root / ".venv/bin/python").unlink()
    assert "does not run: starting afresh" in tree.run("try").stderr
    tree.root = tree.root.rename(tree.root.with_name("moved"))
    assert "another folder: starting afresh" in tree.run("try").stderr
    before = len(tree.installations())
    (tree.root / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    again = tree.run("try")
    assert (again.returncode, "making" in again.stderr) == (0, False)
    assert len(tree.installations()) == before + 1


def test_two_installations_do_not_meet(tree: Tree) -> None:
    (tree.root / ".venv").mkdir()
    (tree.root / ".venv/installing").write_text(f"{os.getpid()}\n")
    refused = tree.run("try")
    assert refused.returncode == 1
    assert f"process {os.getpid()} is installing" in refused.stderr


def test_an_environment_made_by_hand_is_kept(tree: Tree) -> None:
    (tree.root / ".venv/bin").mkdir(parents=True)
    shutil.copy(tree.python, tree.root / ".venv/bin/python")
    (tree.root / ".venv/mine").touch()
    assert tree.run("try").returncode == 0
    assert (tree.root / ".venv/mine").exists()


def test_no_python_is_one_sentence(tree: Tree) -> None:
    tree.python.unlink()
    stopped = tree.run("try")
    assert stopped.returncode == 2
    assert stopped.stderr.startswith("./try: no Python 3.11 or newer found")
    assert stopped.stderr.count("\n") == 1


def test_an_old_python_is_passed_over(tree: Tree) -> None:
    old = tree.bin / "python3.14"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert "with python3.12" in tree.run("try").stderr
    stopped = tree.run("check", PYTHON=str(old))
    assert stopped.returncode == 2
    assert "is not a Python 3.11" in stopped.stderr
    assert (tree.root / ".venv/installed-for").exists()  # nothing is removed for a wrong PYTHON


def test_no_venv_module_names_the_package_to_install(tree: Tree) -> None:
    stopped = tree.run("try", NO_VENV="1")
    assert stopped.returncode == 2
    assert "apt install python3-venv" in stopped.stderr
    assert not (tree.root / ".venv").exists()


def test_a_failing_pip_is_quoted(tree: Tree) -> None:
    stopped = tree.run("try", PIP_FAILS="1")
    assert stopped.returncode == 1
    assert "no matching distribution" in stopped.stderr
    assert "package index reachable?" in stopped.stderr
    assert tree.run("try").returncode == 0


def test_check_runs_every_step_and_ends_with_pytest(tree: Tree) -> None:
    done = tree.run("check", "-k", "two words")
    assert done.returncode == 0
    steps = [line for line in done.stdout.splitlines() if line.startswith("==")]
    assert [step[3:] for step in steps] == [
        "ruff check",
        "ruff format",
        "mypy",
        "lint-imports",
        "pytest",
    ]
    last = done.stdout.splitlines()[-1]
    assert last.startswith("ran pytest")
    marks = "not full and not wide and not cluster and not browser"
    assert last.endswith(f"-m {marks} -k two words in {tree.root}")
    assert "--cases" in last


def test_wide_and_full_run_the_marked_tests_and_all_cases(tree: Tree) -> None:
    wide, full = (tree.run("check", option).stdout for option in ("--wide", "--full"))
    assert "--cases" not in wide + full
    assert "-m not full and not cluster" in wide
    assert "not full" not in full
    assert "not wide" not in full
    assert "not cluster" not in tree.run("check", "--cluster").stdout
    every = tree.run("check", "--cluster", "--browser", "--full").stdout
    assert "-m not browser in" in every


def test_tests_in_a_browser_have_a_process_of_their_own(tree: Tree) -> None:
    assert "-m browser" not in tree.run("check").stdout
    ran = tree.run("check", "--browser", "-k", "some").stdout.splitlines()
    first, second = (line for line in ran if line.startswith("ran pytest"))
    assert f"not cluster and not browser -k some in {tree.root}" in first
    assert f"-m browser and not full -k some in {tree.root}" in second


@pytest.mark.parametrize(("given", "random"), [((), False), (("--full",), True)])
def test_only_full_draws_new_examples(tree: Tree, given: tuple[str, ...], random: bool) -> None:
    words = tree.run("check", *given).stdout.split()
    profile = hypothesis.settings.get_profile(words[words.index("--hypothesis-profile") + 1])
    assert profile.derandomize is not random
    assert profile.deadline is None


def test_no_test_overrules_the_profile() -> None:
    for file in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "settings":
                given = {keyword.arg for keyword in node.keywords}
                assert not given & {"derandomize", "database"}, file.name


@pytest.mark.parametrize("step", ["ruff", "mypy", "lint-imports", "pytest"])
def test_check_says_which_step_failed(tree: Tree, step: str) -> None:
    done = tree.run("check", FAILING=step)
    assert done.returncode == 1
    assert f"./check: failed: {step}" in done.stderr
    assert "ran pytest" in done.stdout
