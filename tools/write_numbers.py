"""Write the benchmark figures of README.md and docs/benchmarks.md from benchmarks/results/*.json.

    python tools/write_numbers.py

Every figure stands between ``<!-- numbers: NAME -->`` and ``<!-- end -->``, and NAME is a function
below. Nobody types these figures: run this after a benchmark. A test compares the documents with
what this script writes, and the picture with the JSON it was drawn from.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
PICTURE = ROOT / "docs" / "images" / "benchmarks-kernel.png"

PEERS = ("oneDAL", "LIBSVM")
OURS = "maxmargin"
# Okabe & Ito's colours, and markers, so that no reader needs the colours.
LOOKS = {OURS: ("#0072B2", "o"), "oneDAL": ("#D55E00", "s"), "LIBSVM": ("#009E73", "^")}
_MARKED = re.compile(r"<!-- numbers: ([\w-]+) -->\n(.*?)<!-- end -->", re.DOTALL)


def main() -> None:
    """Bring the documents and the picture up to date."""
    for document in DOCUMENTS:
        old = document.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            document.write_text(new, encoding="utf-8")
    draw_curves(PICTURE)


def filled(text: str) -> str:
    """Return a document with every marked part written anew."""
    return _MARKED.sub(lambda part: _marked(part[1], PARTS[part[1]]()), text)


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
    threads = facts["arguments"].get("threads")
    used = {None: "", 1: ", one thread"}.get(threads, f", {threads} threads")
    day = datetime.fromisoformat(facts["date"])
    packages = ", ".join(f"{p} {versions[p]}" for p in ("numpy", "scikit-learn", "numba"))
    return (
        f"Measured on {day.day} {day:%B %Y} at commit `{facts['commit'][:7]}` on {facts['cores']} "
        f"shared cores of an {facts['cpu']}{used}, with Python {facts['python']}, {packages}."
    )


# ---------------------------------------------------------------- kernel machines


def _races() -> list[tuple[str, dict[str, dict[str, Any]], dict[str, Any]]]:
    """Return each set with the ratios to its peers, and the single fits that were compared."""
    pairs = rows("kernel", "The others at their default tolerance")
    fits = rows("kernel", "Every fit")
    found = []
    for name in dict.fromkeys(row["data"] for row in pairs):
        peers = {row["peer"]: row for row in pairs if row["data"] == name}
        settings = {row["our tol"] for row in peers.values()}
        tightest = min(map(float, settings))
        singles: dict[str, Any] = {}
        for fit in fits:
            if fit["data"] != name:
                continue
            tol = float(fit["setting"].removeprefix("tol "))
            if fit["tool"] != OURS or abs(tol / tightest - 1) < 0.05:
                singles[fit["tool"]] = fit
        found.append((name, peers, singles))
    return found


def speed() -> str:
    """Return the one table of the README, with its conditions."""
    lines, nearer = [], []
    for name, peers, singles in _races():
        ours = singles[OURS]
        cells = [f"{name}, {size(ours['size'])}", seconds(ours["s"]), gap(ours["above D*"])]
        for peer in PEERS:
            cells += [times(peers[peer]["peer / maxmargin"]), gap(singles[peer]["above D*"])]
        lines.append(cells)
        nearer += [name] * (min(singles[peer]["above D*"] for peer in PEERS) < ours["above D*"])
    means = {row["peer"]: row["geometric mean"] for row in rows("kernel", "The others' seconds")}
    summary = [cell for peer in PEERS for cell in (f"{two_digits(means[peer])} ×", "")]
    lines.append(["geometric mean", "", "", *summary])
    header = ["data", "ours", "off by", *(text for peer in PEERS for text in (peer, "off by"))]
    fair = (
        "Measured by the objective instead of the bound, another tool is nearer to the optimum on "
        f"{len(nearer)} of {len(lines) - 1} sets."
    )
    return f"{table(header, lines)}\n\n{conditions('kernel')} {_tools()} {fair}"


def _tools() -> str:
    """Return the versions of the others."""
    (said,) = (n for n in result("kernel")["notes"] if n.startswith("tools: "))
    versions = dict(re.findall(r"(\w+) \(([^)]+)\)", said))
    return f"oneDAL is that of {versions['oneDAL']}, LIBSVM that of {versions['LIBSVM']}."


def kernel() -> str:
    """Return every set: parameters, tolerances, how near each came, and ratios with quartiles."""
    lines = []
    for name, peers, singles in _races():
        for peer in PEERS:
            row = peers[peer]
            lines.append(
                [
                    f"{name}, {size(singles[OURS]['size'])}",
                    singles[OURS]["objective"],
                    peer,
                    gap(row["our tol"]),
                    gap(row["ours above D*"]),
                    gap(row["peer above D*"]),
                    between(row["peer / maxmargin"]),
                ]
            )
    header = ["data", "parameters", "peer", "our `tol`", "we are above D*", "the peer is above D*"]
    return table([*header, "its time / ours"], lines, left=3)


def kernel_conditions() -> str:
    """Return the conditions of the race of kernel machines."""
    columns = [n for n in result("kernel")["notes"] if re.match(r"[\w-]+: columns", n)]
    scaled = ", ".join(note.replace(": columns", "") for note in columns)
    return f"{conditions('kernel')} {_tools()} Columns are scaled: {scaled}."


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
        for row in rows("kernel", "Our fit that is not worse")
    ]
    header = ["data", "support vectors", "fit / limit line", "kernel values / (rows × SV)"]
    return table([*header, "share of the certificate"], lines)


def predicting() -> str:
    """Return the times of predictions."""
    found = rows("kernel", "Predictions")
    lines = []
    for name in dict.fromkeys(row["case"] for row in found):
        of = {row["candidate"]: row for row in found if row["case"] == name}
        ratios = [times(of[peer]["/ maxmargin"]) for peer in PEERS]
        lines.append([name, f"{of[OURS]['rows']:,}", seconds(of[OURS]["s"]["median"]), *ratios])
    return table(["data", "rows", "ours", *PEERS], lines)


def draw_curves(path: Path) -> None:
    """Draw how near every fit came to the optimum, by seconds."""
    from matplotlib.figure import Figure

    fits = rows("kernel", "Every fit")
    shapes = {fit["data"]: fit["size"] for fit in fits}
    names = list(shapes)
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    axes = list(figure.subplots(2, 3, sharex=True, sharey=True).ravel())
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
    axes[-1].legend(handles, labels, loc="center", frameon=False, title="each mark is a fit")
    figure.savefig(path, dpi=90, metadata={"Source": digest("kernel")})


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
    "speed": speed,
    "kernel": kernel,
    "kernel-conditions": kernel_conditions,
    "kernel-parts": kernel_parts,
    "predicting": predicting,
    "reading": reading,
    "startup": startup,
    "linear": linear,
    "checkouts": checkouts,
}

if __name__ == "__main__":
    main()
