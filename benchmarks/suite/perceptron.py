"""Perceptrons: the time of an epoch, the memory bandwidth reached, averaging, streams.

An epoch is (t(6 epochs) − t(1 epoch)) / 5, so that validation and what follows a fit cancel; the
whole fit of one epoch is shown beside it.
"""

from collections.abc import Iterator

from threadpoolctl import threadpool_limits

from benchmarks import pictures
from benchmarks.datasets import Dataset, available
from benchmarks.measure import Series, Spread, ratio, spread
from benchmarks.objective import outcome, same_updates
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.solvers import Budget
from benchmarks.solvers.perceptrons import Ours, ScikitLearn
from benchmarks.suite.epochs import AVERAGED, MANY, ORDERS, READS, Epochs, measure_epochs
from benchmarks.suite.streams import stream_table

REAL = ("news20-binary", "20newsgroups-bydate")
FALLBACK = "sparse-synthetic"
SETS = ("dense-float64", "dense-float32", *REAL, FALLBACK)


def run(options: Options) -> Report:
    """Measure everything asked for."""
    report = Report("perceptron")
    measured: list[Epochs] = []
    chosen = options.chosen([*SETS, "stream"])
    with threadpool_limits(options.threads or 1):
        for dataset in _datasets([name for name in chosen if name != "stream"], options):
            print(f"perceptron: {dataset.name} ({dataset.shape})", flush=True)
            measured.append(measure_epochs(dataset, options.repeats))
            _compare(dataset, report)
    if measured:
        report.tables += [_epoch_table(measured), _fit_table(measured), _averaged_table(measured)]
        if dense := [epochs for epochs in measured if not epochs.dataset.sparse]:
            report.tables.append(_bandwidth_table(dense))
        panels = {epochs.dataset.name: epochs.curves() for epochs in measured}
        report.draw = lambda: pictures.against_seconds(
            panels, "training mistakes, % of rows", log=False
        )
    if "stream" in chosen:
        print("perceptron: stream", flush=True)
        report.tables.append(stream_table(options))
    return report


def _datasets(names: list[str], options: Options) -> Iterator[Dataset]:
    """Yield the sets asked for; the made-up text stands in where no real one can be had."""
    seen = []
    asked = [name for name in names if name != FALLBACK]
    for dataset in available(asked, options.data, options.quick):
        seen.append(dataset.name)
        yield dataset
    if FALLBACK in names and (FALLBACK in options.only or not set(REAL) & set(seen)):
        yield from available([FALLBACK], None, options.quick)


def _compare(dataset: Dataset, report: Report) -> None:
    """Say whether ours and scikit-learn's solved the same problem on this set."""
    budget = Budget(MANY)
    ours, theirs = (kind(shuffle=False).fit(dataset, budget) for kind in (Ours, ScikitLearn))
    if len(ours.classes_) == 2:
        report.checks.append(same_updates(ours, theirs, dataset))
        return
    # Rows can be sorted by class, which suits nobody: judge the shuffled fits.
    models = [kind(shuffle=True).fit(dataset, budget) for kind in (Ours, ScikitLearn)]
    results = [outcome(model, dataset) for model in models]
    found = ", ".join(
        f"{name} {result.mistake_rate:.2%} training mistakes"
        + ("" if result.test_accuracy is None else f" and {result.test_accuracy:.2%} test accuracy")
        for name, result in zip(("maxmargin", "scikit-learn"), results, strict=True)
    )
    report.checks.append(
        Check(
            "same problem",
            f"{dataset.name}: ours learns {len(ours.classes_)} classes together, scikit-learn one "
            "against the rest",
            None,
            found,
        )
    )


def _milliseconds(series: Series) -> Spread:
    return spread(1e3 * series)


def _epoch_table(measured: list[Epochs]) -> Table:
    rows: list[list[Cell]] = []
    for epochs in measured:
        for shuffle, order in ORDERS.items():
            ours, theirs = Ours(shuffle), ScikitLearn(shuffle)
            rows.append(
                [
                    epochs.dataset.name,
                    order,
                    _milliseconds(epochs.epoch(ours)),
                    _milliseconds(epochs.epoch(theirs)),
                    spread(ratio(epochs.epoch(theirs), epochs.epoch(ours))),
                    spread(ratio(epochs.epoch(theirs, "cpu"), epochs.epoch(ours, "cpu"))),
                ]
            )
    return Table(
        "One epoch: median (quartiles); a ratio above 1 means ours is faster",
        ("data", "order", "maxmargin ms", "scikit-learn ms", "ratio, wall", "ratio, CPU"),
        rows,
    )


def _fit_table(measured: list[Epochs]) -> Table:
    rows: list[list[Cell]] = []
    for epochs in measured:
        for shuffle, order in ORDERS.items():
            ours, theirs = epochs.fit(Ours(shuffle)), epochs.fit(ScikitLearn(shuffle))
            rows.append(
                [
                    epochs.dataset.name,
                    order,
                    _milliseconds(ours),
                    _milliseconds(theirs),
                    spread(ratio(theirs, ours)),
                ]
            )
    return Table(
        "The whole fit of one epoch, input checks included",
        ("data", "order", "maxmargin ms", "scikit-learn ms", "ratio, wall"),
        rows,
    )


def _averaged_table(measured: list[Epochs]) -> Table:
    rows: list[list[Cell]] = [
        [
            epochs.dataset.name,
            _milliseconds(epochs.epoch(Ours(shuffle=False))),
            _milliseconds(epochs.epoch(AVERAGED)),
            spread(ratio(epochs.epoch(AVERAGED), epochs.epoch(Ours(shuffle=False)))),
        ]
        for epochs in measured
    ]
    return Table(
        "What averaging costs, per epoch in order",
        ("data", "plain ms", "averaged ms", "averaged / plain"),
        rows,
    )


def _bandwidth_table(measured: list[Epochs]) -> Table:
    rows: list[list[Cell]] = []
    for epochs in measured:
        gigabytes = epochs.dataset.X.nbytes / 1e9
        epoch = epochs.epoch(Ours(shuffle=False))
        best = min(READS, key=lambda name: spread(epochs.timings.wall(name)).median)
        read = epochs.timings.wall(best)
        rows.append(
            [
                epochs.dataset.name,
                spread(ratio(gigabytes + 0 * epoch, epoch)),
                spread(gigabytes / read),
                best,
                spread(ratio(read, epoch)),
            ]
        )
    return Table(
        "Memory bandwidth of an epoch in order, beside the best plain read of the same array",
        ("data", "epoch GB/s", "plain read GB/s", "plain read", "fraction"),
        rows,
    )
