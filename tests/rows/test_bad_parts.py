"""Parts that cannot be learnt from, and fits that end early: what users are told, and left with."""

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.errors import DataFileError
from maxmargin.problems.problem import Status
from maxmargin.rows.on_dask import load_parts
from tests.rows.conftest import Cluster

PARTS, ROWS, D = 400, 60, 5
BAD = 317
Parts = list[Any]


def make_parts(count: int = PARTS, dtype: Any = np.float64) -> Parts:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((count, ROWS, D)).astype(dtype)
    y = (X[:, :, 0] + rng.standard_normal((count, ROWS)) > 0).astype(np.int64)
    return [[X[k], y[k], np.ones(ROWS)] for k in range(count)]


def _set(values: Any, at: Any, value: float) -> Any:
    values = values.copy()
    values[at] = value
    return values


SPOILED: dict[str, tuple[Callable[[Any, Any, Any], tuple[Any, ...]], str]] = {
    "nan": (lambda X, y, w: (_set(X, (7, 3), np.nan), y, w), "column 3 has nan in row 7"),
    "infinity": (lambda X, y, w: (_set(X, (7, 3), np.inf), y, w), "column 3 has inf in row 7"),
    "a column": (lambda X, y, w: (np.ones((ROWS, D + 1)), y, w), "6 columns, but others have 5"),
    "sparse": (lambda X, y, w: (sp.csr_array(X), y, w), "sparse, but others are dense"),
    "text": (lambda X, y, w: (X.astype(str), y, w), "encode it as numbers"),
    "a label less": (lambda X, y, w: (X, y[:-1], w), "60 rows, but there are 59 labels"),
    "words": (lambda X, y, w: (X, np.where(y > 0, "yes", "no"), w), "labels are strings"),
    "fractions": (lambda X, y, w: (X, y + 0.5, w), "fractions"),
    "label of nan": (lambda X, y, w: (X, _set(y + 0.0, 3, np.nan), w), "the label is nan in row 3"),
    "no labels": (lambda X, y, w: (X, None, w), "it has no labels, but others have"),
    "huge weight": (lambda X, y, w: (X, y, _set(w, 3, 1e200)), r"weight contains 1e\+200 \(row 3"),
    "negative weight": (lambda X, y, w: (X, y, _set(w, 3, -1.0)), r"weight in row 3 is -1"),
    "weight of nan": (lambda X, y, w: (X, y, _set(w, 3, np.nan)), "weight in row 3 is nan"),
}


def spoiled(how: str) -> list[tuple[Any, ...]]:
    parts = [tuple(part) for part in make_parts()]
    parts[BAD] = SPOILED[how][0](*parts[BAD])
    return parts


@pytest.mark.parametrize("how", SPOILED)
def test_a_bad_part_is_named(client: Any, how: str) -> None:
    with pytest.raises(ValueError, match=rf"^part {BAD} .*{SPOILED[how][1]}"):
        mm.LinearSVC().fit(mm.data.open(spoiled(how), client=client))


def test_sources_that_begin_alike_are_not_taken_for_each_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    client, checkpoint = cluster.ready(2), tmp_path / "kept"
    one, other = make_parts(30), make_parts(30)
    for part in other[1:]:
        part[0] = 1 - 2 * part[0]
    sources = [mm.data.open([tuple(part) for part in parts]) for parts in (one, other)]
    rows = load_parts(sources[0], client)  # they stay there
    for source in sources:
        expected = mm.LinearSVC(loss="squared_hinge").fit(source)
        found = mm.LinearSVC(loss="squared_hinge").fit(source.with_options(client=client))
        assert_array_equal(found.coef_, expected.coef_)
    del rows
    stop = at_iteration(3, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mm.LinearSVC(callback=stop).fit(
            sources[0].with_options(checkpoint=checkpoint, every=1, client=None)
        )
    with pytest.raises(ValueError, match=r"kept.* holds a fit that was not finished"):
        mm.LinearSVC().fit(sources[1].with_options(checkpoint=checkpoint, every=1))


def test_a_single_class_and_no_weight_are_refused() -> None:
    parts = make_parts(10)
    ones = [(X, np.ones(ROWS)) for X, *_ in parts]
    with pytest.raises(ValueError, match=r"at least 2 classes .* only one class: 1"):
        mm.LinearSVC().fit(mm.data.open(ones))
    weightless = [(X, y, 0 * weight) for X, y, weight in parts]
    for machine in (mm.LinearSVC(), mm.LinearSVR()):
        with pytest.raises(ValueError, match="weight"):
            machine.fit(mm.data.open(weightless))


def test_a_number_that_overflows_is_named() -> None:
    parts = make_parts(10)
    parts[4][0][2, 1] = 1e200
    with pytest.raises(ValueError, match="Column 1 of X reaches 1e\\+200"):
        mm.LinearSVC().fit(mm.data.open([tuple(part) for part in parts]))


# ------------------------------------------------------------------- what changes during a fit


class Reads:
    """A part that is read from a file when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self) -> tuple[Any, Any]:
        rows = np.load(self.path)
        return rows[:, 1:], rows[:, 0]


def save_parts(folder: Path, count: int = 20) -> list[Path]:
    paths = []
    rng = np.random.default_rng(0)
    for number in range(count):
        rows = rng.standard_normal((2_000, D + 1))
        rows[:, 0] = rows[:, 1] + rng.standard_normal(len(rows)) > 0
        paths.append(folder / f"{number}.npy")
        np.save(paths[-1], rows)
    return paths


def at_iteration(number: int, work: Callable[[], Any]) -> Callable[[Any], None]:
    def callback(progress: Any) -> None:
        if progress.iteration == number:
            work()

    return callback


MEMORY = "4MB"  # not enough to keep the rows


def test_files_that_change_or_disappear_between_passes_are_named(tmp_path: Path) -> None:
    paths = save_parts(tmp_path)
    source = mm.data.open([Reads(path) for path in paths], memory=MEMORY)

    def shorten() -> None:
        np.save(paths[13], np.load(paths[13])[:-1])

    with pytest.raises(DataFileError, match=r"^part 13 .*1999 rows.* 2000"):
        mm.LinearSVC(callback=at_iteration(2, shorten)).fit(source)
    machine = mm.LinearSVC(callback=at_iteration(2, paths[13].unlink))
    with pytest.raises(DataFileError, match=r"^part 13 .*13\.npy"):
        machine.fit(source)
    assert not hasattr(machine, "coef_")


def test_a_file_that_is_gone_when_the_fit_begins_is_named(client: Any, tmp_path: Path) -> None:
    paths = save_parts(tmp_path, 4)
    source = mm.data.open([Reads(path) for path in paths], client=client)
    paths[2].unlink()
    with pytest.raises(DataFileError, match=r"^part 2 .*2\.npy"):
        mm.LinearSVC().fit(source)


# ------------------------------------------------------------------- what blocks do not do


REFUSED: list[dict[str, Any]] = [
    {"penalty": "l1"},
    {"penalty": "elasticnet"},
    {"multi_class": "crammer_singer"},
    {"probability": True},
    {"solver": "subgradient"},
]


@pytest.mark.parametrize("parameters", REFUSED, ids=str)
def test_what_needs_all_rows_in_memory_is_refused_before_rows_are_read(
    parameters: dict[str, Any],
) -> None:
    [[name, value]] = parameters.items()
    source = mm.data.open([tuple(part) for part in make_parts(3)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(source), "load", None)  # whoever reads rows fails
        with pytest.raises(ValueError, match=rf"^{name}={value!r} needs all rows in memory"):
            mm.LinearSVC(**parameters).fit(source)


def test_labels_and_weights_belong_to_the_source() -> None:
    X, y, weight = make_parts(1)[0]
    source = mm.data.open(X, y)
    with pytest.raises(ValueError, match=r"^y is given beside rows .* as y= or label="):
        mm.LinearSVC().fit(source, y)
    with pytest.raises(ValueError, match=r"^sample_weight is given beside rows .* as weight="):
        mm.LinearSVR().fit(source, sample_weight=weight)
    for machine in (mm.LinearSVC(), mm.LinearSVR()):
        with pytest.raises(ValueError, match="requires y to be passed"):
            machine.fit(mm.data.open(X))


@pytest.mark.parametrize(
    "machine", [mm.LinearSVC(), mm.SVC(gamma=0.5), mm.PartitionedSVC(size=30)], ids=repr
)
def test_models_know_the_columns_of_a_source(machine: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, y, _ = make_parts(1)[0]
    frame = pandas.DataFrame(X, columns=list("abcde"))
    source = mm.data.open(frame.assign(y=y), label="y", rows=7)
    model = machine.fit(source)

    def certify(source: Any) -> Any:
        return mm.certify(model, source)

    assert model.feature_names_in_.tolist() == list("abcde")
    assert_array_equal(model.predict(mm.data.open(frame, rows=9)), model.predict(frame))
    assert certify(source).relative_gap < 1e-3
    reordered, renamed = frame[list("bacde")], frame.rename(columns={"a": "z"})
    wrong = {"in another order": reordered, "feature names should match": renamed}
    for use in (model.predict, certify):
        for message, other in wrong.items():
            with pytest.raises(ValueError, match=message):
                use(mm.data.open(other.assign(y=y), label="y"))
        with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5"):
            use(mm.data.open(X[:, :4], y))
    assert "z" in machine.fit(mm.data.open(renamed.assign(y=y), label="y")).feature_names_in_


# ------------------------------------------------------------------- fits that end early


class Counted:
    """Chunks that can be iterated over again, and count how often a chunk is read."""

    def __init__(self, interrupt_at: int = -1) -> None:
        self.parts, self.reads, self.interrupt_at = make_parts(40), 0, interrupt_at

    def __iter__(self) -> Iterator[Any]:
        for X, y, _ in self.parts:
            self.reads += 1
            if self.reads == self.interrupt_at:
                os.kill(os.getpid(), signal.SIGINT)
            yield np.repeat(X, 30, axis=0), np.repeat(y, 30)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_leaves_what_it_leaves_in_memory() -> None:
    X, y, _ = (np.concatenate(column) for column in zip(*make_parts(), strict=True))
    models = []
    for rows in ((X, y), (mm.data.open(X, y, rows=999),)):
        model: Any = mm.LinearSVC(callback=at_iteration(3, interrupt))
        with pytest.raises(KeyboardInterrupt, match="weights reached so far are kept"):
            model.fit(*rows)
        models.append(model)
    one, other = models
    assert one.status_ is other.status_ is Status.INTERRUPTED
    assert_array_equal(other.coef_, one.coef_)
    assert set(vars(one)) == set(vars(other))
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-14)


def test_ctrl_c_in_the_middle_of_a_pass_keeps_the_best_weights_so_far() -> None:
    model: Any = mm.LinearSVC()
    with pytest.raises(KeyboardInterrupt):  # by the thread that reads ahead, or by another
        model.fit(mm.data.open(Counted(interrupt_at=40 * 9 + 20), memory="8MB"))
    assert model.status_ is Status.INTERRUPTED
    assert model.coef_.any()
    assert model.certificate_.primal >= model.certificate_.dual


def test_ctrl_c_while_rows_are_surveyed_leaves_nothing() -> None:
    model = mm.LinearSVC()
    with pytest.raises(KeyboardInterrupt):
        model.fit(mm.data.open(Counted(interrupt_at=20), memory="8MB"))
    assert not hasattr(model, "coef_")


def test_a_fit_without_time_reads_rows_for_its_certificate_alone() -> None:
    chunks = Counted()
    model: Any = mm.LinearSVC(max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="stopped at max_time"):
        model.fit(mm.data.open(chunks, memory="8MB"))
    assert model.status_ is Status.MAX_TIME
    assert np.isfinite(model.certificate_.primal)
    assert chunks.reads <= 6 * 40  # six passes: survey, bounds on both sides, a constant


@pytest.mark.wide
@pytest.mark.parametrize("how", ["max_iter", "callback", "Ctrl-C"])
def test_a_fit_that_ended_early_goes_on_from_its_checkpoint(how: str, tmp_path: Path) -> None:
    X, y, _ = (np.concatenate(column) for column in zip(*make_parts(), strict=True))
    expected = mm.LinearSVC(tol=1e-8).fit(X, y)

    def opened() -> Any:
        return mm.data.open(X, y, rows=999, checkpoint=tmp_path).with_options(every=1)

    def stop(progress: Any) -> bool:
        if how == "Ctrl-C" and progress.iteration == 4:
            interrupt()
        return how == "callback" and progress.iteration == 4

    first: Any = mm.LinearSVC(tol=1e-8, max_iter=4 if how == "max_iter" else 1000, callback=stop)
    ends: Any = {
        "max_iter": pytest.warns(ConvergenceWarning, match="stopped at max_iter"),
        "callback": nullcontext(),
        "Ctrl-C": pytest.raises(KeyboardInterrupt),
    }[how]
    with ends:
        first.fit(opened())
    assert list(tmp_path.rglob("*.npz"))
    found = mm.LinearSVC(tol=1e-8).fit(opened())
    assert_array_equal(found.coef_, expected.coef_)
    assert found.n_iter_ == expected.n_iter_
    assert not list(tmp_path.rglob("*.npz"))


def test_a_row_of_a_table_without_a_label_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,0\n2,1\n3,\n4,1\n")
    with pytest.raises(DataFileError, match=r"rows\.csv:4: there is no label"):
        mm.LinearSVC().fit(mm.data.open(path, label="y"))


def test_certify_takes_no_notice_of_checkpoints(tmp_path: Path) -> None:
    X, y, _ = make_parts(1)[0]
    source = mm.data.open(X, y, checkpoint=tmp_path / "kept").with_options(every=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.LinearSVC(tol=1e-9, max_iter=2).fit(source)
    kept = sorted(tmp_path.rglob("*"))
    proof: Any = mm.certify(mm.LinearSVC(C=3.0).fit(X, y), source)
    assert proof.relative_gap < 1e-3
    assert sorted(tmp_path.rglob("*")) == kept


def test_transformers_that_differ_in_a_function_are_told_apart() -> None:
    from sklearn.preprocessing import FunctionTransformer

    source = mm.data.open(np.ones((4, 2)), [0, 1, 0, 1])
    prints = {source.mapped(FunctionTransformer(f)).fingerprint() for f in (np.negative, np.abs)}
    assert len(prints) == 2
