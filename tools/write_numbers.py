"""Write the benchmark figures of README.md and docs/benchmarks.md from benchmarks/results/*.json.

    python tools/write_numbers.py

Tables stand between ``<!-- numbers: NAME -->`` and ``<!-- end -->``, phrases within a line between
``<!-- number: NAME -->`` and ``<!-- end -->``; NAME is a function below. Nobody types these
figures: run this after a benchmark. A test compares the documents with what this script writes, and
the picture with the JSON it was drawn from.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "benchmarks.md")
PICTURE = ROOT / "docs" / "images" / "benchmarks-kernel.png"

PEERS = ("oneDAL", "LIBSVM")
OURS = "maxmargin"
RACE, RACE_OF_TWO = "kernel", "kernel-2-threads"
# Okabe & Ito's colours, and markers, so that no reader needs the colours.
LOOKS = {OURS: ("#0072B2", "o"), "oneDAL": ("#D55E00", "s"), "LIBSVM": ("#009E73", "^")}
_MARKED = re.compile(r"<!-- numbers: ([\w-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
_IN_LINE = re.compile(r"(<!-- number: ([\w-]+) -->).*?(<!-- end -->)")


def main() -> None:
    """Bring the documents and the picture up to date."""
    for document in DOCUMENTS:
        old = document.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            document.write_text(new, encoding="utf-8")
    draw_curves(PICTURE)


def filled(text: str) -> str:
    """Return a document in which every marked part has the figures of the results."""
    text = _MARKED.sub(lambda part: _marked(part[1], PARTS[part[1]]()), text)
    return _IN_LINE.sub(lambda part: f"{part[1]}{PHRASES[part[2]]()}{part[3]}", text)


def _marked(name: str, content: str) -> str:
    return f"<!-- numbers: {name} -->\n\n{content}\n\n<!-- end -->"


# ---------------------------------------------------------------- what the JSON says


@cache
def result(name: str) -> Any:
    """Return the JSON of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows(name: str, title: str) -> list[dict[str, Any]]:
    """Return the rows of the one table whose title begins so."""
    (found,) = (t["rows"] for t in result(name)["tables"] if t["title"].startswith(title))
    return list(found)


def digest(name: str) -> str:
    """Return a digest of the JSON of a benchmark."""
    return hashlib.sha256((RESULTS / f"{name}.json").read_bytes()).hexdigest()


# ---------------------------------------------------------------- words and tables


def table(header: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table; all but the first ``left`` columns are aligned to the right."""
    rule = ["---" if k < left else "---:" for k in range(len(header))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def seconds(value: float) -> str:
    """Return a time with two digits, in the unit that suits it."""
    if value < 0.9995:
        return f"{two_digits(1000 * value)} ms"
    return f"{two_digits(value)} s"


def two_digits(value: float) -> str:
    """Return a number with two significant digits, or all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def times(spread: Mapping[str, float]) -> str:
    """Return how many times as long somebody takes."""
    return f"{two_digits(spread['median'])} ×"


def between(spread: Mapping[str, float]) -> str:
    """Return a ratio with its quartiles."""
    return f"{spread['median']:.2f} ({spread['low']:.2f}–{spread['high']:.2f})"


def in_words(count: int) -> str:
    """Return a small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)


def gap(value: float | str) -> str:
    """Return a relative gap with two digits, and a minus sign at which no line is broken."""
    digits, _, exponent = f"{float(value):.1e}".partition("e")
    return f"{digits}e{int(exponent)}".replace("-", "−")


def size(text: str) -> str:
    """Return "4435×36, float64" as "4,435 × 36"."""
    numbers = text.split(",")[0].split("×")
    return " × ".join(f"{int(number):,}" for number in numbers)


def conditions(name: str) -> str:
    """Return where, when and with what a benchmark was run."""
    facts = result(name)["facts"]
    versions = facts["versions"]
    day = datetime.fromisoformat(facts["date"])
    packages = ", ".join(f"{p} {versions[p]}" for p in ("numpy", "scikit-learn", "numba"))
    return (
        f"Measured on {day.day} {day:%B %Y} at commit `{facts['commit'][:7]}` on {facts['cores']} "
        f"shared cores of an {facts['cpu']}, with Python {facts['python']}, {packages}."
    )


# ---------------------------------------------------------------- kernel machines


class Fought(NamedTuple):
    """One set of a race: each peer's row, and the fits that were compared by their tools."""

    name: str
    peers: dict[str, dict[str, Any]]
    fits: dict[str, dict[str, Any]]

    @property
    def label(self) -> str:
        """The set with its size."""
        return f"{self.name}, {size(self.fits[OURS]['size'])}"

    def times(self) -> list[str]:
        """Return our seconds, and how many times as long each peer takes."""
        ratios = [times(self.peers[peer]["peer / maxmargin"]) for peer in PEERS]
        return [seconds(self.peers[PEERS[0]]["maxmargin s"]["median"]), *ratios]


def _races(race: str) -> list[Fought]:
    """Return every set of a race."""
    pairs = rows(race, "The others at their default tolerance")
    every = rows(race, "Every fit")
    found = []
    for name in dict.fromkeys(row["data"] for row in pairs):
        peers = {row["peer"]: row for row in pairs if row["data"] == name}
        matched = float(peers[PEERS[0]]["our tol"])
        fits: dict[str, Any] = {}
        for fit in (fit for fit in every if fit["data"] == name):
            tol = float(fit["setting"].removeprefix("tol "))
            if fit["tool"] != OURS or abs(tol / matched - 1) < 0.05:
                fits[fit["tool"]] = fit
        found.append(Fought(name, peers, fits))
    return found


def _means(race: str) -> dict[str, float]:
    return {row["peer"]: row["geometric mean"] for row in rows(race, "The others' seconds")}


def race() -> str:
    """Return the claim of the first screen."""
    means, sets = _means(RACE), len(_races(RACE))
    said = " and ".join(f"{two_digits(means[peer])} × as fast as {peer}" for peer in PEERS)
    return f"{said} (geometric means over {in_words(sets)} data sets, one thread)"


def _tools() -> str:
    """Return the versions of the others."""
    (said,) = (n for n in result(RACE)["notes"] if n.startswith("tools: "))
    versions = dict(re.findall(r"(\w+) \(([^)]+)\)", said))
    return f"oneDAL is that of {versions['oneDAL']}, LIBSVM that of {versions['LIBSVM']}."


def kernel() -> str:
    """Return the times on every set, by one thread and by two, and what ours lost."""
    two = {fought.name: fought for fought in _races(RACE_OF_TWO)}
    lines, lost = [], []
    for one in _races(RACE):
        lines.append([one.label, *one.times(), *two[one.name].times()])
        for threads, fought in (("one thread", one), ("two threads", two[one.name])):
            ratios = {p: fought.peers[p]["peer / maxmargin"]["median"] for p in PEERS}
            lost += [f"{one.name} ({p}, {threads})" for p, ratio in ratios.items() if ratio < 1]
    means = [[f"{two_digits(_means(name)[p])} ×" for p in PEERS] for name in (RACE, RACE_OF_TWO)]
    lines.append(["geometric mean", "", *means[0], "", *means[1]])
    header = ["data", "one thread", *PEERS, "two threads", *PEERS]
    said = f"Ours is slower on {', '.join(lost)}." if lost else "Ours is slower on none of these."
    return f"{table(header, lines)}\n\n{said}"


def kernel_objectives() -> str:
    """Return how near to the optimum the compared fits came."""
    lines = []
    for fought in _races(RACE):
        ours = fought.peers[PEERS[0]]
        above = [gap(fought.peers[peer]["peer above D*"]) for peer in PEERS]
        cells = [gap(ours["our tol"]), gap(ours["ours above D*"]), *above]
        lines.append([fought.name, fought.fits[OURS]["objective"], *cells])
    header = ["data", "parameters", "our `tol`", "ours above D*"]
    return table([*header, *(f"{peer} above D*" for peer in PEERS)], lines, left=2)


def kernel_conditions() -> str:
    """Return the conditions of the race of kernel machines."""
    columns = [n for n in result(RACE)["notes"] if re.match(r"[\w-]+: columns", n)]
    scaled = ", ".join(note.replace(": columns", "") for note in columns)
    rounds = result(RACE)["facts"]["arguments"]["repeats"]
    said = f"Medians of {in_words(rounds)} rounds."
    return f"{said} {conditions(RACE)} {_tools()} Columns are scaled: {scaled}."


def kernel_parts() -> str:
    """Return what our fits are made of."""
    lines = [
        [
            row["data"],
            f"{row['support vectors']:,}",
            two_digits(row["fit / limit line"]),
            two_digits(row["kernel values / (rows × support vectors)"]),
            f"{row['certificate / fit']:.0%}",
        ]
        for row in rows(RACE, "Our fit that is not worse")
    ]
    header = ["data", "support vectors", "fit / limit line", "kernel values / (rows × SV)"]
    return table([*header, "share of the certificate"], lines)


def predicting() -> str:
    """Return the times of predictions."""
    found = rows(RACE, "Predictions")
    lines = []
    for name in dict.fromkeys(row["case"] for row in found):
        of = {row["candidate"]: row for row in found if row["case"] == name}
        ratios = [times(of[peer]["/ maxmargin"]) for peer in PEERS]
        lines.append([name, f"{of[OURS]['rows']:,}", seconds(of[OURS]["s"]["median"]), *ratios])
    return table(["data", "rows", "ours", *PEERS], lines)


def draw_curves(path: Path) -> None:
    """Draw how near every fit came to the optimum, by seconds."""
    from matplotlib.figure import Figure

    fits = rows(RACE, "Every fit")
    shapes = {fit["data"]: fit["size"] for fit in fits}
    names = list(shapes)
    height = -(-len(names) // 3)
    figure = Figure(figsize=(9, 0.6 + 2.6 * height), layout="constrained")
    axes = list(figure.subplots(height, 3, sharex=True, sharey=True, squeeze=False).ravel())
    for axis, name in zip(axes, names, strict=False):
        for tool, (colour, marker) in LOOKS.items():
            points = [
                (f["s"], f["above D*"]) for f in fits if (f["data"], f["tool"]) == (name, tool)
            ]
            style = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 7}
            axis.loglog(*zip(*points, strict=True), label=tool, **style)
        axis.set(title=f"{name}, {size(shapes[name])}")
        axis.tick_params(labelbottom=True)
        axis.grid(alpha=0.3)
    figure.supxlabel("seconds, one fit each")
    figure.supylabel("relative suboptimality, P/D* − 1")
    handles, labels = axes[0].get_legend_handles_labels()
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=90, metadata={"Source": digest(RACE)})


# ---------------------------------------------------------------- everyday data, searches


def _everyday() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return each case with our row and scikit-learn's."""
    found = rows("everyday", "everyday: a row for each candidate")
    of = {(row["case"], row["candidate"]): row for row in found}
    cases = [row["case"] for row in found if row["candidate"] == "scikit-learn"]
    return [(case, of[case, OURS], of[case, "scikit-learn"]) for case in cases]


def everyday() -> str:
    """Return the times of fits to small data, and of many classes."""
    lines = [
        [
            case,
            size(ours["size"]),
            *(seconds(row["CPU s"]["median"]) for row in (ours, theirs)),
            f"{two_digits(1 / theirs['/ maxmargin, CPU']['median'])} ×",
        ]
        for case, ours, theirs in _everyday()
    ]
    header = ["fit", "rows × columns", "ours", "scikit-learn", "ours / scikit-learn"]
    return f"{table(header, lines)}\n\n{conditions('everyday')}"


def slower() -> str:
    """Return where ours is slower."""
    said = [
        f"{two_digits(1 / ratio)} × for `{case.replace(', ', '` on ', 1)}"
        for case, ratio in ((c, t["/ maxmargin, CPU"]["median"]) for c, _, t in _everyday())
        if ratio < 1
    ]
    return "; ".join(said)


def limit() -> str:
    """Return when a fit came back that was allowed one second."""
    (row,) = (
        row
        for row in rows("everyday", "everyday: a row for each candidate")
        if row["case"] == "SVC(max_time=1)"
    )
    return f"on {size(row['size']).split(' ')[0]} rows returned after {seconds(row['s']['median'])}"


def searching() -> str:
    """Return the times of searches on a grid."""
    found = rows("search", "search: a row for each candidate")
    lines = []
    for case in dict.fromkeys(row["case"] for row in found):
        of = {row["candidate"]: row for row in found if row["case"] == case}
        ours, theirs = of["SVCSearchCV"], of["GridSearchCV, LIBSVM"]
        lines.append(
            [
                f"{case}, {size(ours['size'])}",
                *(seconds(row["s"]["median"]) for row in (ours, theirs)),
                times(theirs["/ SVCSearchCV"]),
            ]
        )
    header = ["data", "`SVCSearchCV`", "`GridSearchCV`", "ratio"]
    return f"{table(header, lines)}\n\n{conditions('search')}"


def search() -> str:
    """Return how much faster a search is."""
    (mean,) = (
        row["geometric mean"]
        for row in rows("search", "Geometric means")
        if row["candidate"].startswith("GridSearchCV, LIBSVM")
    )
    return f"{two_digits(mean)} ×"


# ---------------------------------------------------------------- files, start, checkouts


def reading() -> str:
    """Return the times of reading svmlight text."""
    found = rows("reading", "reading")
    lines = []
    for name in dict.fromkeys(row["case"] for row in found):
        of = {row["candidate"]: row for row in found if row["case"] == name}
        lines.append(
            [
                name,
                of["one thread"]["size"],
                seconds(of["one thread"]["s"]["median"]),
                seconds(of["threads"]["s"]["median"]),
                times(of["scikit-learn"]["/ one thread"]),
            ]
        )
    mean = rows("reading", "Geometric means")[0]["geometric mean"]
    lines.append(["geometric mean", "", "", "", f"{two_digits(mean)} ×"])
    header = ["file", "size", "one thread", "two threads", "scikit-learn / one thread"]
    return f"{table(header, lines)}\n\n{conditions('reading')}"


def startup() -> str:
    """Return what the first fit of an installation costs, when nothing is compiled."""
    lines = [
        [row["case"], seconds(row["s"]["median"]), str(row["signatures compiled"])]
        for row in rows("startup-against", "startup-against")
        if row["candidate"] == "new"
    ]
    header = ["first call", "time, with everything compiled on the way", "loops compiled"]
    return f"{table(header, lines)}\n\n{conditions('startup-against')}"


def linear() -> str:
    """Return our own times of linear machines."""
    lines = [
        [
            row["case"],
            size(row["size"]),
            seconds(row["s"]["median"]),
            gap(row["gap"]),
            f"{row['peak MB']:,.0f} MB",
        ]
        for row in rows("linear-against", "linear-against")
        if row["candidate"] == "new"
    ]
    header = ["case", "rows × columns", "whole fit", "certified gap", "peak of the process"]
    return f"{table(header, lines)}\n\n{conditions('linear-against')}"


def checkouts() -> str:
    """Return how each pair of checkouts compared."""
    lines = []
    for name in ("kernel", "linear", "search", "kpca", "startup"):
        (mean,) = rows(f"{name}-against", "Geometric means")
        facts = result(f"{name}-against")["facts"]
        commits = [n for n in result(f"{name}-against")["notes"] if n.startswith("old is commit")]
        old = re.findall(r"commit (\w{7})", commits[0])[0] if commits else "–"
        lines.append(
            [
                name,
                old,
                facts["commit"][:7],
                str(mean["cases"]),
                f"{mean['in CPU time']:.2f}",
                f"{mean['least in CPU time']:.2f}",
            ]
        )
    header = ["benchmark", "old", "new", "cases", "old / new, CPU time", "worst case"]
    return table(header, lines, left=3)


PARTS: dict[str, Callable[[], str]] = {
    "kernel": kernel,
    "kernel-objectives": kernel_objectives,
    "kernel-conditions": kernel_conditions,
    "kernel-parts": kernel_parts,
    "predicting": predicting,
    "everyday": everyday,
    "search": searching,
    "reading": reading,
    "startup": startup,
    "linear": linear,
    "checkouts": checkouts,
}

PHRASES: dict[str, Callable[[], str]] = {
    "race": race,
    "search": search,
    "slower": slower,
    "limit": limit,
}

if __name__ == "__main__":
    main()
