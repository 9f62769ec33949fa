"""The report: one file that is complete, honest, and inert in any browser."""

import hashlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from html import unescape
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from matplotlib.colors import to_hex
from sklearn import metrics, svm
from sklearn.compose import ColumnTransformer
from sklearn.datasets import dump_svmlight_file, make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.diagnosis.learners import written_out
from maxmargin.diagnosis.significance import wilson
from maxmargin.plots import MarginDisplay, style
from maxmargin.reports import context, figures, page, provenance, report
from maxmargin.reports.certificate import verdict
from maxmargin.reports.context import make_context
from maxmargin.reports.figures import Drawing
from maxmargin.reports.quality import COLOURED, Quality, auc_interval, quality_of
from maxmargin.reports.tables import (
    SUPPORT_VECTORS,
    importances,
    row_values,
)
from tests.support.browser import CHROMIUM, Browser, browser
from tests.support.drawing import assert_fits
from tests.support.pages import Page

X, Y = mm.datasets.gaussians(60, variance=0.3, random_state=0)
NAMES = np.where(Y > 0, "yes", "no")
APART, APART_Y = mm.datasets.separable(40, margin=0.3, random_state=0)
THREE = np.where(X[:, 0] > 2.0, "c", np.where(Y > 0, "b", "a"))
WIDE = np.random.default_rng(0).normal(size=(60, 8))
WIDE_Y = (WIDE[:, 3] + 0.2 * WIDE[:, 6] > 0).astype(int)
TARGET = X[:, 0] + np.sin(X[:, 1])
TEXTS = [" ".join(["good"] * (i % 3 + 1) if i % 2 else ["bad"] * (i % 4 + 1)) for i in range(20)]
HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onload='alert(1)",
    "</style></title><img src=x onerror=alert(1)>",
    "a\0b\u202ec\nd",
    "א" * 10_000,
    r"_$\frac{",
]


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    assert not plt.get_fignums()  # a report leaves none behind


@pytest.fixture(scope="module")
def diagnosis() -> mm.Diagnosis:
    return mm.diagnose(APART, APART_Y, max_time=2.0)


@pytest.fixture
def write(tmp_path: Path, diagnosis: mm.Diagnosis) -> Callable[..., Page]:
    """Write a report without pictures unless asked for, and read it."""

    def written(model: Any, X: Any, y: Any, *, drawn: bool = False, **how: Any) -> Page:
        path = tmp_path / "report.html"
        options: dict[str, Any] = {"diagnosis": diagnosis, "theme": "light", **how}
        with pytest.MonkeyPatch.context() as patch:
            if not drawn:
                patch.setattr(figures, "choose_figures", lambda _: iter(()))
            assert report(model, X, y, path, **options) == path
        return Page(path.read_text(encoding="utf-8"))

    return written


def assert_sound(found: Page) -> None:
    assert not {"script", "iframe", "object", "embed", "form", "base"} & {
        n for n, _ in found.elements
    }
    assert "http:" not in found.source
    assert "https:" not in found.source
    for name, attributes in found.elements:
        assert not [key for key in attributes if key.startswith("on")], (name, attributes)
        for key in ("src", "href", "srcset"):
            assert (attributes.get(key) or "#").startswith(("data:", "#"))
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert [a["href"] for a in found.all("a")] == [f"#{name}" for name in ids]
    assert len(found.all("h1")) == 1
    assert len(found.all("h2")) == len(found.all("section")) == len(ids)
    assert all(image["alt"] for image in found.all("img"))


MODELS: dict[str, tuple[Any, Any, Any, str]] = {
    "SVC": (mm.SVC(), X, NAMES, "no other boundary of this kernel"),
    "three": (mm.SVC(decision_function_shape="ovo"), X, THREE, "no other set of boundaries"),
    "linear": (mm.LinearSVC(), X, NAMES, "no other hyperplane"),
    "joint": (mm.LinearSVC(multi_class="crammer_singer"), X, THREE, "no other set of hyperplanes"),
    "hard": (mm.HardMarginSVC(), APART, APART_Y, "no other hyperplane"),
    "vote": (mm.BayesPointClassifier(), APART, APART_Y, "There is none"),
    "nu": (mm.NuSVC(nu=0.4), X, Y, "no other boundary"),
    "SVR": (mm.SVR(), X, TARGET, "no other function"),
    "LinearSVR": (mm.LinearSVR(), X, TARGET, "no other function"),
    "QuantileSVR": (mm.QuantileSVR(quantile=0.8), X, TARGET, "no other function"),
    "one class": (mm.OneClassSVM(nu=0.2), X, None, "no other surface"),
    "perceptron": (mm.Perceptron(), APART, APART_Y, "could have taken more than"),
    "averaged": (mm.AveragedPerceptron(max_epochs=5), X, Y, "never settles"),
    "voted": (mm.VotedPerceptron(max_epochs=5), X, THREE, "no bound on how many"),
    "kernel perceptron": (mm.KernelPerceptron(), APART, APART_Y, "corrections"),
    "pipeline": (make_pipeline(StandardScaler(), mm.SVC()), pd.DataFrame(X), NAMES, "Proved"),
    "sparse": (mm.LinearSVC(), sp.csr_array(WIDE), WIDE_Y, "Proved"),
    "float32": (mm.SVC(), WIDE.astype(np.float32), WIDE_Y, "Proved"),
    "lists": (mm.SVC(), WIDE.tolist(), NAMES.tolist(), "Proved"),
    "given": (mm.SVC(kernel="precomputed"), X @ X.T, Y, "Proved"),
    "texts": (make_pipeline(TfidfVectorizer(), mm.LinearSVC()), TEXTS, [0, 1] * 10, "Proved"),
    "series": (
        make_pipeline(TfidfVectorizer(), mm.LinearSVC()),
        pd.Series(TEXTS, index=range(5, 25)),
        [0, 1] * 10,
        "Proved",
    ),
    "indefinite": (mm.SVC(kernel="sigmoid"), X, Y, "Not proved"),
    "early": (mm.SVC(max_iter=1, tol=1e-12), WIDE, WIDE_Y, "Not proved"),
    "foreign": (KNeighborsClassifier(), X, Y, "There is none"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_every_model_has_a_report(name: str, write: Callable[..., Page]) -> None:
    model, rows, y, words = MODELS[name]
    found = write(model.fit(rows, y), rows, y)
    assert_sound(found)
    assert words in found.text
    if hasattr(model, "score"):
        score = model.score(rows, y)
        assert (f"{score:.2%}" if "SVR" not in name else f"R²{score:.4f}") in found.text


def test_test_rows_come_first_and_with_an_interval(write: Callable[..., Page]) -> None:
    model = mm.LinearSVC().fit(X[:40], NAMES[:40])
    found = write(model, X[:40], NAMES[:40], X_test=X[40:], y_test=NAMES[40:])
    score = model.score(X[40:], NAMES[40:])
    low, high = wilson(round(20 * score) / 20, 20)
    figure = f"accuracy{score:.2%}{round(20 * score)} of 20 test rows; {low:.1%} to {high:.1%}"
    assert figure in found.text
    assert found.tables[0][0] == ["", "test rows", "95 % interval", "training rows"]
    assert found.tables[0][1][:2] == ["accuracy", f"{score:.2%}"]
    confusion = found.table("label", "no", "yes")
    assert sum(int(cell) for line in confusion for cell in line[1:]) == 20


def test_wilson_by_its_definition() -> None:
    for right, n in ((0, 10), (3, 10), (97, 100), (50, 50)):
        for end in wilson(right / n, n):
            if 1e-9 < end < 1 - 1e-9:  # where |share − p| is 1.96 standard errors of p
                assert abs(right / n - end) == pytest.approx(
                    1.959964 * np.sqrt(end * (1 - end) / n)
                )


# What is proved.


def certificate(primal: float, dual: float, **more: Any) -> mm.Certificate:
    return mm.Certificate(primal, dual, 0.0, 0.0, 0.0, 0.1, **more)


def test_verdicts_say_what_the_numbers_allow() -> None:
    proved, words = verdict(certificate(100.0, 99.97), 1e-3, "hyperplane")
    assert proved
    assert "no other hyperplane can have an objective more than 0.03 % better" in words
    assert "more than 0.000001 % better" in verdict(certificate(1.0, 1.0), 1e-3, "x")[1]
    assert "condition: so." in verdict(certificate(1.0, 1.0, caveat="so"), 1e-3, "x")[1]
    unbounded = certificate(1.0, -np.inf, caveat="the kernel is indefinite")
    both = certificate(100.0, 99.5, parts=(certificate(1.0, 0.5), certificate(99.0, 99.0)))
    refuted, rough = certificate(1.0, 2.0), certificate(1.0, 1.0, rounding=0.1)
    for found in (unbounded, both, refuted, rough, certificate(100.0, 99.8)):
        proved, words = verdict(found, 1e-3, "x")
        assert not proved
        assert words == f"Not proved to the precision asked for (0.1 %). {found}"


def test_a_proof_of_a_model_that_brings_none_says_what_it_is(write: Callable[..., Page]) -> None:
    words = "computed from X and y"
    assert words in write(svm.SVC().fit(X, Y), X, Y).text
    assert words not in write(FITTED, X, Y).text


# How good it is.


@pytest.mark.parametrize("seed", range(4))
def test_figures_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = (2, 2, 5, 30)[seed]
    classes = np.array([f"c{k:02}" for k in range(count)])
    raw = rng.normal(size=(300, 1 if count == 2 else count))
    y = rng.choice(classes, 300)
    said = classes[(raw[:, 0] > 0).astype(int) if count == 2 else raw.argmax(axis=1)]
    found = Quality(y, said, raw, classes)
    area = [
        metrics.roc_auc_score(y == label, raw[:, -1] if count == 2 else raw[:, k])
        for k, label in enumerate(classes)
    ]
    expected = {
        "accuracy": metrics.accuracy_score(y, said),
        "balanced accuracy": metrics.balanced_accuracy_score(y, said),
        "F1, mean of the classes": metrics.f1_score(y, said, average="macro"),
        "AUC": area[1],
        "AUC, each class against the rest": np.mean(area),
    }
    for figure in found.figures():
        assert figure.value == pytest.approx(expected[figure.name])
        if figure.interval:
            assert 0 <= figure.low < figure.value < figure.high <= 1
    assert len([*found.figures()]) == 4


def test_figures_that_do_not_exist_are_left_out() -> None:
    zeros = np.zeros((3, 1))
    one_class = Quality(np.array([1, 1, 1]), np.array([1, 0, 1]), zeros, np.array([0, 1]))
    assert [f.name for f in one_class.figures()] == ["accuracy", "F1, mean of the classes"]
    no_order = Quality(np.array([0, 1, 1]), np.array([1, 1, 1]), zeros, np.array([0, 1]))
    assert not [f.name for f in no_order.figures() if f.name.startswith("AUC")]


def test_an_interval_of_an_area_by_its_definition() -> None:
    for value, m, n in ((0.9, 40, 60), (1.0, 10, 200), (0.0, 5, 5), (0.5, 300, 300)):
        low, high = auc_interval(value, m, n)
        assert low <= value <= high
        assert high - low > 0
        half = (m + n) / 2 - 1
        for end in {low, high} - {0.0, 1.0}:
            spread = 1 + half * (1 - end) / (2 - end) + half * end / (1 + end)
            error = np.sqrt(end * (1 - end) * spread / (m * n))
            assert abs(value - end) == pytest.approx(1.96 * error, rel=1e-6)


def test_any_number_of_classes_has_a_table_of_confusions(write: Callable[..., Page]) -> None:
    rows, k = make_blobs(500, centers=25, cluster_std=2.0, random_state=0)
    y = np.array([f"kind {label}" for label in k])
    model = GaussianNB().fit(rows, y)
    found = write(model, rows, y)
    assert_sound(found)
    matrix = np.array([line[1:] for line in found.table("label", "kind 0", "kind 1")], dtype=int)
    assert np.array_equal(matrix, metrics.confusion_matrix(y, model.predict(rows)))
    by_class = found.table("label", "rows", "precision")
    assert len(by_class) == 25
    recall = metrics.recall_score(y, model.predict(rows), average=None)
    assert [line[3].partition(" ")[0] for line in by_class] == [f"{share:.1%}" for share in recall]
    many = np.arange(200) % 70
    model = KNeighborsClassifier().fit(np.arange(200.0)[:, np.newaxis], many)
    found = write(model, many[:, np.newaxis], many)
    assert "too large to read" in found.text
    assert len(found.source) < 200_000


# The summary.


def test_the_summary_says_what_to_beware_of(write: Callable[..., Page]) -> None:
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(400, 5)), (rng.random(400) < 0.1).astype(int)
    learnt = KNeighborsClassifier(1).fit(rows[:200], y[:200])
    found = write(learnt, rows[:200], y[:200], X_test=rows[200:], y_test=y[200:], remarks=["<odd>"])
    top = found.text[: found.text.index("How good it is")]
    for words in ("accuracy alone misleads", "not clearly above", "by heart", "<odd>"):
        assert words in top, words
    assert "No rows were held out" not in top
    constant = mm.LinearSVC(C=1e-9).fit(rows[:200], y[:200])
    top = write(constant, rows[:200], y[:200], X_test=rows[200:230], y_test=y[200:230] * 2).text
    assert "labels that the model has never seen" in top
    assert "only 30 test rows" in top
    assert "No rows were held out" in write(constant, rows, y).text
    assert "It finds no row of '1'" in write(constant, rows, y).text
    clean = write(FITTED, X, Y, X_test=np.tile(X, (3, 1)), y_test=np.tile(Y, 3)).text
    for words in ("misleads", "not clearly", "by heart", "finds no row", "held out:", "only "):
        assert words not in clean[: clean.index("How good it is")], words


def test_a_guess_has_no_columns_and_no_boundary(write: Callable[..., Page]) -> None:
    for model in (DummyClassifier(), make_pipeline(StandardScaler(), DummyClassifier())):
        about = _context(model, WIDE, WIDE_Y)
        captions = [picture.caption for picture in figures.choose_figures(about)]
        assert not captions
        found = write(model, WIDE, WIDE_Y)
        assert_sound(found)
        assert "DummyClassifier ignores all columns" in found.text
        assert "DummyClassifier keeps no support vectors" in found.text
        assert "Pictures" not in found.text
        assert "columns that matter" not in found.text
        assert not [line[0] for line in found.tables[0] if line[0].startswith("AUC")]


# Names that the reader knows.


def test_rows_have_the_numbers_of_the_user_everywhere(write: Callable[..., Page]) -> None:
    order = np.random.default_rng(0).permutation(60)
    lines = 10 * order + 7  # lines of a file that was shuffled
    train, test = order[:40], order[40:]
    model = mm.SVC().fit(X[train], NAMES[train])
    found = write(
        model,
        X[train],
        NAMES[train],
        X_test=X[test],
        y_test=NAMES[test],
        rows=lines[:40],
        rows_test=lines[40:],
        row_name="line",
        label_name="answer",
    )
    tables = [table for table in found.tables if table[0][0] == "line"]
    assert len(tables) == 2
    assert not [table for table in found.tables if table[0][0] == "row"]
    shown = [(int(line[0]), line[1]) for table in tables for line in table[1:]]
    for number, label in shown:
        assert NAMES[(number - 7) // 10] == label
    support = {int(line[0]) for line in found.table("line", "answer", "distance", "kind")}
    assert support == set((10 * train[model.support_] + 7).tolist())
    wrong = {int(line[0]) for table in tables for line in table[1:] if line[1] != line[2]}
    assert wrong >= set((10 * test[model.predict(X[test]) != NAMES[test]] + 7).tolist())


# Columns that matter.


def mixed() -> tuple[Any, Any, list[str]]:
    """Return numbers and words with gaps, as they come from files; the first column decides."""
    rng = np.random.default_rng(0)
    rows = np.empty((200, 4), dtype=object)
    rows[:, :2] = rng.normal(size=(200, 2))
    rows[:, 2] = rng.choice(["red", "green"], 200)
    rows[:, 3] = rng.choice(list("abc"), 200)
    height = rows[:, 0].astype(float) + 0.8 * (rows[:, 2] == "red")
    rows[rng.random(200) < 0.1, 1] = np.nan
    return rows, np.where(height > 0.4, "tall", "small"), ["height", "weight", "colour", "town"]


def prepared() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
            ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), [2, 3]),
        ],
        verbose_feature_names_out=False,
    )


@pytest.mark.wide
@pytest.mark.parametrize(
    "machine",
    [
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
        KNeighborsClassifier(),
        GaussianNB(),
        MLPClassifier((8,), solver="lbfgs", alpha=1.0, max_iter=2000, random_state=0),
        make_pipeline(StandardScaler(), mm.SVC()),
        mm.LinearSVC(),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_words_and_gaps_are_no_hindrance(machine: Any, write: Callable[..., Page]) -> None:
    rows, y, names = mixed()
    model = make_pipeline(prepared(), machine).fit(rows[:150], y[:150])
    held = {"X_test": rows[150:], "y_test": y[150:]}
    found = write(
        model, rows[:150], y[:150], feature_names=names, drawn=True, diagnosis=None, **held
    )
    assert_sound(found)
    assert "could not be drawn" not in found.text
    assert "cannot be diagnosed" not in found.text
    cells = {cell for one in found.tables for line in one for cell in line}
    assert cells.isdisjoint({"nan", "None"})
    assert found.tables[0][1][1] == f"{model.score(rows[150:], y[150:]):.2%}"
    importance = found.table("column")
    assert importance[0][0] == "height"
    if isinstance(machine, mm.LinearSVC):
        assert {line[0] for line in importance} <= {*names[:2], "colour_red", "colour_green"} | {
            f"town_{town}" for town in "abc"
        }
    else:
        assert {line[0] for line in importance} == set(names)
    ours = type(model.steps[-1][1]).__module__.startswith("maxmargin")
    assert ("keeps no support vectors" in found.text) or ours or "SVC" in str(machine)


def test_weights_are_per_standard_deviation(write: Callable[..., Page]) -> None:
    rows = WIDE * 10.0 ** np.arange(-4, 4)
    model = make_pipeline(StandardScaler(), mm.LinearSVC()).fit(rows, WIDE_Y)
    weights = model[-1].coef_[0]
    lines = write(model, rows, WIDE_Y, feature_names=list("abcdefgh")).table("column", "weight")
    order = np.argsort(-np.abs(weights))
    assert [line[0] for line in lines] == ["abcdefgh"[j] for j in order]
    assert [float(line[1]) for line in lines] == pytest.approx(weights[order], rel=1e-3)
    raw = mm.LinearSVC().fit(WIDE, THREE)
    lines = write(raw, WIDE, THREE).table("column", "largest weight", "for")
    first = raw.coef_ * WIDE.std(axis=0)
    best = int(np.abs(first).max(axis=0).argmax())
    assert lines[0][0] == "x₁x₂x₃x₄x₅x₆x₇x₈"[2 * best : 2 * best + 2]
    own = int(np.abs(first[:, best]).argmax())
    assert float(lines[0][1]) == pytest.approx(first[own, best], rel=1e-3)
    assert lines[0][2] == raw.classes_[own]


# Support vectors and rows worth looking at.


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (mm.SVC(), "Fitted in the same way to these rows alone, the model would be the same."),
        (mm.LinearSVC(max_iter=1), "It is not proved that these are the right ones"),
        (mm.SVC(kernel="sigmoid"), "It is not proved that these are the right ones"),
        (mm.SVC(max_iter=1), "There are none: all rows get the same prediction."),
        (mm.KernelPerceptron(max_epochs=5), "rows were corrected for"),
        (svm.SVC(), "support vectors, "),
        (svm.NuSVC(nu=0.3), "support vectors, "),
    ],
    ids=str,
)
def test_support_vectors_decide_alone_at_the_optimum_only(
    model: Any, words: str, write: Callable[..., Page]
) -> None:
    said = write(model.fit(X, Y), X, Y).text
    assert words in said
    assert ("the model would be the same" in said) == ("alone" in words)
    assert ("corrected for" in said) == ("corrected" in words)
    assert ("C = " in said) == ("C" in getattr(model, "steps", [("", model)])[-1][1].get_params())


def test_support_vectors_by_slack_with_kinds(write: Callable[..., Page]) -> None:
    model = mm.SVC(C=0.5).fit(WIDE, THREE)
    found = write(model, WIDE, THREE)
    lines = found.table("row", "label")
    count = len(model.support_)
    assert count > SUPPORT_VECTORS == len(lines)
    assert f"{SUPPORT_VECTORS} of {count}." in found.text
    assert f"{count} support vectors, {count / 60:.1%}" in found.text
    rows = [int(line[0]) for line in lines]
    slack = model.slack_.max(axis=0)
    assert [THREE[row] for row in rows] == [line[1] for line in lines]
    assert slack[rows].tolist() == sorted(slack[model.support_], reverse=True)[:SUPPORT_VECTORS]
    for row, line in zip(rows, lines, strict=True):
        place = model.support_.tolist().index(row)
        assert line[3] in model.support_kind_[:, place]
        assert float(line[4]) == pytest.approx(model.alpha_[:, row].max(), rel=1e-3)


def test_support_vectors_are_not_looked_up_in_other_rows(write: Callable[..., Page]) -> None:
    model = mm.SVC().fit(X, Y)
    for rows, y in ((X[:50], Y[:50]), (X + 0.01, Y)):
        found = write(model, rows, y)
        assert "X is not what the model was fitted to" in found.text
        assert not [table for table in found.tables if "α" in table[0]]


def test_mistakes_are_the_mistakes_the_worst_first(write: Callable[..., Page]) -> None:
    model = mm.LinearSVC().fit(X, NAMES)
    found = write(model, X, NAMES, feature_names=["height", "weight"])
    distance = model.distance(X) * np.where(model.classes_[1] == NAMES, 1, -1)
    wrong = np.flatnonzero(model.predict(X) != NAMES)
    lines = found.table("row", "label", "predicted", "distance", "height", "weight")
    assert [int(line[0]) for line in lines] == sorted(wrong, key=lambda k: distance[k])[:15]
    for line in lines:
        assert line[1] != line[2]
        assert float(line[3]) == pytest.approx(distance[int(line[0])], rel=1e-3)
        assert float(line[4]) == pytest.approx(X[int(line[0]), 0], rel=1e-4)
    assert f"{len(lines)} of {len(wrong)} mistakes" in found.text


def test_largest_errors_of_a_regressor(write: Callable[..., Page]) -> None:
    model = mm.LinearSVR().fit(X, TARGET)
    lines = write(model, X, TARGET).table("row", "target", "predicted", "residual", "x₁")
    off = np.abs(TARGET - model.predict(X))
    assert [int(line[0]) for line in lines] == np.argsort(-off)[:15].tolist()


def _context(model: Any, X: Any, y: Any) -> context.Context:
    return make_context(model.fit(X, y), X, y)


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame], ids=str)
def test_the_columns_that_decide_are_shown(make: Any) -> None:
    rows = make(WIDE)
    if hasattr(rows, "columns"):
        rows.columns = [f"c{j}" for j in range(8)]
    found = importances(_context(mm.LinearSVC(C=10.0), rows, WIDE_Y), "accuracy")
    assert found is not None
    assert found.order[:2].tolist() == [3, 6]
    assert row_values(rows, 4, found.order.tolist())[0] == f"{WIDE[4, 3]:.5g}"
    sparse = sp.csr_array(WIDE)
    assert row_values(sparse, 4, [3]) == [f"{WIDE[4, 3]:.5g}"]
    assert importances(_context(mm.LinearSVC(), sparse, WIDE_Y), "accuracy") is None
    assert importances(_context(DummyClassifier(), WIDE, WIDE_Y), "accuracy") is None


def test_many_rows_are_sampled_openly(
    write: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "_FEWEST", 25)
    monkeypatch.setattr(context, "_OPERATIONS", 1.0)
    found = write(mm.SVC().fit(X, NAMES), X, NAMES)
    assert "25 of 60 training rows, drawn at random" in found.text
    assert "of 25 training rows; " in found.text
    whole = _context(mm.LinearSVC(), X, NAMES).train  # linear models are not too dear
    assert not whole.sampled
    mapped = make_pipeline(mm.Nystroem(n_components=9, random_state=0), mm.LinearSVC())
    assert _context(mapped, X, NAMES).train.sampled  # but maps are
    found = write(mapped.fit(WIDE, THREE), WIDE, THREE)  # columns behind them are the reader's own
    assert found.table("column", "accuracy lost")[0][0].startswith("x")


# Searches, and how to get the same again.


def test_a_search_is_its_best_model_and_its_map(write: Callable[..., Page]) -> None:
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    search = mm.SVCSearchCV(mm.SVC(), grid, cv=2).fit(X, NAMES)
    found = write(search, X, NAMES)
    assert_sound(found)
    lines = found.table("setting", "mean score")
    assert len(lines) == 6
    assert float(lines[0][1]) == pytest.approx(search.best_score_, rel=1e-3)
    assert len(found.all("img")) == 1  # the map is drawn with the search
    alone = write(search.best_estimator_, X, NAMES)
    assert "The search" not in alone.text
    assert found.tables[0] == alone.tables[0]


@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(C=3.0, gamma=0.5),
        make_pipeline(StandardScaler(with_mean=False), mm.LinearSVC(C=0.1)),
        mm.SVC(kernel=2.0 * mm.kernels.RBF(gamma=np.float64(0.3)) + mm.kernels.Linear()),
        make_pipeline(
            ColumnTransformer([("a", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1])]),
            Pipeline([("out", FunctionTransformer(written_out, accept_sparse=True))]),
            make_pipeline(FunctionTransformer(np.arctan), svm.SVC(class_weight={-1: 2.0, 1: 1.0})),
        ),
        make_pipeline(
            Nystroem(n_components=9, random_state=0),
            mm.Nystroem(n_components=5, random_state=1),
            mm.LinearSVC(),
        ),
    ],
    ids=["kernel", "pipeline", "composed", "nested", "twins"],
)
def test_the_code_makes_the_same_model(model: Any) -> None:
    space: dict[str, Any] = {"X": X, "y": Y, "X_test": X, "y_test": Y}
    about = make_context(model.fit(X, Y), X, Y, X_test=X, y_test=Y)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(provenance.default_script(about), space)
    quality = quality_of(about.parts[0], about.machine)
    assert printed.getvalue().splitlines() == [f"{f.name}: {f}" for f in quality.figures()]
    assert repr(space["model"]) == repr(model)
    expected = model.fit(X, Y).decision_function(X)
    assert np.array_equal(space["model"].fit(X, Y).decision_function(X), expected)


def shown_script(found: Page) -> str:
    """Return what stands in the report's only <pre>, as a reader would copy it."""
    inside = found.source.partition("<pre><code>")[2].partition("</code>")[0]
    return unescape(inside)


@pytest.mark.wide
@pytest.mark.parametrize("given", ["table", "svmlight", "bundled"])
def test_the_script_of_the_command_prints_the_figures_of_its_report(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "the data").mkdir()
    rows = np.c_[X, Y > 0]
    np.savetxt("the data/it's.csv", rows[:, [0, 2, 1]], "%g", ",", header="a,side,b", comments="")
    dump_svmlight_file(X, Y, "the data/dense.svm", zero_based=False)
    call = {"table": ["the data/it's.csv", "--label", "side"], "svmlight": ["the data/dense.svm"]}
    options = ["--seed", "3", "--test", "0.4", "--report", "r.html", "--max-time", "5"]
    told = CliRunner().invoke(main, ["try", *call.get(given, []), *options])
    assert told.exit_code == 0, told.output
    found = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    again = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", shown_script(found)], capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    figures = [f"{line[0]}: {line[1]}" for line in found.tables[0][1:-1]]
    assert again.stdout.splitlines() == figures
    for _, tested, _, trained in found.tables[0][1:-1]:  # as the command has printed them
        assert re.search(f"{tested}.*{trained}", told.output)


def test_the_code_is_honest(write: Callable[..., Page]) -> None:
    script = 'print("<b>1 & 2</b>")\nif True:\n    pass'
    assert script in write(FITTED, X, Y, script=script).text
    drawn = make_pipeline(mm.Nystroem(n_components=20, random_state=3), mm.HardMarginSVC())
    assert "nystroem__random_state = 3" in write(drawn.fit(APART, APART_Y), APART, APART_Y).text
    assert "model.fit(X)" in write(mm.OneClassSVM().fit(X), X, None).text
    with pytest.warns(ConvergenceWarning):
        stopped = mm.SVC(max_time=1e-9).fit(X, Y)
    assert "stopped by the clock" in write(stopped, X, Y).text
    assert "stopped by the clock" not in write(FITTED, X, Y).text
    odd = write(mm.SVC(kernel=lambda A, B: A @ B.T).fit(X, Y), X, Y)
    assert "cannot be written as code" in odd.text
    assert " at 0x" not in odd.text  # which is not the same tomorrow


def test_the_hash_is_the_one_it_says(write: Callable[..., Page]) -> None:
    found = write(mm.LinearSVC().fit(X, Y), X, Y)
    assert hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()[:16] in found.text
    assert provenance.digest(X) == provenance.digest(np.asfortranarray(X))
    assert provenance.digest(X) != provenance.digest(X + 1e-12)
    assert mm.__version__ in found.text
    strings = [np.array(["a", "b"], dtype=object), np.array(["ab", ""], dtype=object)]
    assert provenance.digest(strings[0]) != provenance.digest(strings[1])


def test_equal_input_gives_an_equal_file(write: Callable[..., Page]) -> None:
    one, two = (write(mm.LinearSVC().fit(X, Y), X, Y, drawn=True).source for _ in range(2))
    assert one == two


# Pictures.


def test_a_picture_that_fails_costs_no_other(
    write: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        style.pyplot().figure()  # left open by whoever failed
        raise RuntimeError("<b>no paint</b>")

    monkeypatch.setattr(MarginDisplay, "from_estimator", fail)
    found = write(mm.LinearSVC().fit(X, NAMES), X, NAMES, drawn=True)
    assert "could not be drawn (RuntimeError: <b>no paint</b>)" in found.text
    assert "The data and the boundary" in found.text
    assert len(found.all("img")) == 3
    assert_sound(found)


def test_without_matplotlib_the_rest_is_there(
    write: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ImportError("maxmargin.plots needs matplotlib: pip install matplotlib")

    monkeypatch.setattr(style, "pyplot", missing)
    found = write(mm.LinearSVC().fit(X, NAMES), X, NAMES, drawn=True)
    assert found.text.count("pip install matplotlib") == 4
    assert "Proved" in found.text


@pytest.mark.parametrize("name", ["SVC", "three", "SVR", "one class", "linear", "given", "texts"])
def test_each_kind_has_its_pictures(name: str) -> None:
    model, rows, y, _ = MODELS[name]
    captions = " ".join(p.caption for p in figures.choose_figures(_context(model, rows, y)))
    expected = {
        "SVC": ["boundary, with margins", "own side"],
        "three": ["boundary, with margins", "leads"],
        "SVR": ["diagonal", "Residuals"],
        "one class": ["boundary", "outliers"],
        "linear": ["boundary, with margins", "own side"],
        "given": ["along the boundary", "own side"],
        "texts": ["along the boundary", "own side"],
    }[name]
    assert captions.count(".") >= len(expected)
    assert all(words in captions for words in expected)


@pytest.mark.parametrize("background", ["light", "dark"])
def test_histogram_and_fit_show_the_numbers(background: str) -> None:
    about = _context(mm.LinearSVC(), WIDE, WIDE_Y)
    part = _context(mm.LinearSVR(), X, TARGET).parts[0]
    draw = Drawing(lambda ax: figures.draw_scores(ax, about.train, about.classes))
    fit = Drawing(lambda ax: figures.draw_fit(ax, part))
    with style.theme(background):
        shown = [draw.plot(), fit.plot()]
    heights = [bar.get_height() for bars in draw.ax_.containers for bar in bars]
    assert sum(heights) == pytest.approx(1.0)
    assert draw.ax_.get_xlabel() == "distance"
    points = fit.ax_.collections[0].get_offsets()
    assert np.allclose(points, np.column_stack([TARGET - part.scores.values, TARGET]))
    for display in shown:
        assert display.ax_.get_title(loc="left")
        assert_fits(display.figure_)
        plt.close(display.figure_)


def test_curves_are_those_of_the_scores_in_the_colours_of_the_classes() -> None:
    about = _context(mm.LinearSVC(), WIDE, WIDE_Y)
    given = about.train, about.classes
    roc = Drawing(lambda ax: figures.draw_roc(ax, *given)).plot()
    across, up = roc.ax_.lines[0].get_data()
    area = metrics.roc_auc_score(WIDE_Y, about.model.decision_function(WIDE))
    assert np.trapezoid(up, across) == pytest.approx(area)
    assert f"{area:.2%}" in roc.ax_.lines[0].get_label()
    curves = Drawing(lambda ax: figures.draw_precision(ax, *given)).plot()
    histogram = Drawing(lambda ax: figures.draw_scores(ax, *given)).plot()
    swatches = histogram.ax_.get_legend().legend_handles
    for k in range(2):
        curve, guessing = curves.ax_.lines[2 * k : 2 * k + 2]
        assert guessing.get_ydata()[0] == np.mean(k == WIDE_Y)
        assert to_hex(curve.get_color()) == style.colour(k).lower()
        assert to_hex(swatches[k].get_facecolor()) == style.colour(k).lower()
        assert f".class-{k} {{ background: {style.colour(k)}; }}" in page.style_sheet("auto")
    assert len(style.COLOURS) == COLOURED
    assert style.WRONG not in style.COLOURS
    for display in (roc, curves, histogram):
        assert_fits(display.figure_)
        plt.close(display.figure_)


# Writing.


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    model = mm.LinearSVC().fit(X, Y)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(page, "_find_diagnosis", lambda *_: (None, ""))
    for place, name in ((page, "page"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(figures, "choose_figures", lambda _: iter(()))
            patch.setattr(place, name, fail)
            with pytest.raises(OSError, match="disk full"):
                report(model, X, Y, path)
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


FITTED = mm.LinearSVC().fit(X, Y)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (("no model", X, Y), {}, TypeError, "fitted estimator with predict"),
        ((mm.SVC, X, Y), {}, TypeError, "fitted estimator"),
        ((mm.SVC(), X, Y), {}, NotFittedError, "not fitted"),
        ((FITTED, X, None), {}, ValueError, "y is missing"),
        ((FITTED, X, Y[:10]), {}, ValueError, "y has 10 entries, but X has 60"),
        ((FITTED, X, Y), {"X_test": X}, ValueError, "belong together"),
        ((FITTED, X, Y), {"X_test": X, "y_test": Y[:3]}, ValueError, "y_test has 3"),
        ((FITTED, X, Y), {"X_test": X, "y_test": NAMES}, ValueError, "y_test has no label that"),
        ((FITTED, X, np.c_[Y, Y]), {}, ValueError, r"y must be one column, got shape \(60, 2\)"),
        ((FITTED, X, Y), {"theme": "blue"}, ValueError, "theme must be"),
        ((FITTED, X, Y), {"diagnosis": "fine"}, TypeError, "diagnosis must be"),
        ((FITTED, X, Y), {"search": "grid"}, TypeError, "search must be"),
        ((FITTED, X, Y), {"feature_names": ["a"]}, ValueError, "1 names, but X has 2"),
        ((FITTED, X, Y), {"rows": [1, 2]}, ValueError, "rows has 2 entries for 60 rows"),
        ((FITTED, X, Y), {"rows_test": [1]}, ValueError, "there is no X_test"),
        ((FITTED, WIDE, WIDE_Y), {}, ValueError, "features"),
    ],
)
def test_bad_input_is_named(
    tmp_path: Path, arguments: Any, options: Any, error: type[Exception], words: str
) -> None:
    model, rows, y = arguments
    with pytest.raises(error, match=words):
        report(model, rows, y, tmp_path / "report.html", **options)
    assert not list(tmp_path.iterdir())


def test_bad_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="make it first"):
        report(FITTED, X, Y, tmp_path / "none" / "report.html")
    with pytest.raises(ValueError, match="is not a file"):
        report(FITTED, X, Y, tmp_path)
    unfitted = mm.SVCSearchCV(mm.SVC(), {"C": [1.0]}, cv=2, refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="refit=False"):
        report(unfitted, X, Y, tmp_path / "report.html")


def test_a_diagnosis_is_made_or_its_absence_explained(
    write: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_SECONDS", 2.0)
    assert "Separable" in write(
        mm.LinearSVC().fit(APART, APART_Y), APART, APART_Y, diagnosis=None
    ).text.replace("Linearly s", "S")
    model = make_pipeline(TfidfVectorizer(), mm.LinearSVC()).fit(TEXTS, [0, 1] * 10)
    assert "cannot be diagnosed" in write(model, TEXTS, [0, 1] * 10, diagnosis=None).text
    found = write(mm.SVR().fit(X, TARGET), X, TARGET, diagnosis=None).text
    assert "mean absolute error of always predicting" in found
    assert "RBF kernel" in found


# In a browser.


def test_hostile_names_are_inert(write: Callable[..., Page]) -> None:
    found = hostile(write)
    assert_sound(found)
    assert "alert(1)" in found.text
    assert not set("\0\u202e") & set(found.source)
    assert len(found.source) < 60_000  # ten thousand letters are not repeated


def hostile(write: Callable[..., Page], **options: Any) -> Page:
    rows = pd.DataFrame(WIDE[:, : len(HOSTILE)], columns=HOSTILE)
    labels = np.asarray(HOSTILE)[(np.arange(60) % 5)]
    model = mm.LinearSVC(C=0.01, max_iter=3, tol=1.0).fit(rows, labels)
    return write(model, rows, labels, title=HOSTILE[2], **options)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("there is no Chromium to open reports in (Debian: apt install chromium)")
    with browser() as opened:
        yield opened


def assert_quiet(opened: Browser, path: Path) -> None:
    assert opened.complaints() == []
    assert [url for url in opened.requests() if not url.startswith("data:")] == [path.as_uri()]


def test_browsers_find_nothing_to_complain_about(
    chromium: Browser, write: Callable[..., Page], tmp_path: Path
) -> None:
    grid = {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}
    search = mm.SVCSearchCV(mm.SVC(), grid, cv=2).fit(X, Y)
    found = write(FITTED, X, Y, search=search, drawn=True, theme="auto")
    path = tmp_path / "report.html"
    for width, dark in ((1200, False), (390, False), (320, True)):
        chromium.open(path, width=width, dark=dark)
        assert_quiet(chromium, path)
        assert chromium.value("document.documentElement.scrollWidth") == width
        background = chromium.value("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(21, 24, 28)") is dark
        shown = chromium.value(
            "[...document.images].map(i => [i.complete, i.naturalWidth, i.currentSrc.length])"
        )
        assert len(shown) == len(found.all("img")) == 5
        assert all(complete and pixels > 100 for complete, pixels, _ in shown)
        first = "document.querySelector('#diagnosis table').rows[1].cells"
        answer, count = (chromium.value(f"{first}[{k}].clientWidth") for k in (1, 2))
        assert answer > count  # sentences have the room, not numbers
    chromium.print_to(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_many_classes_scroll_in_a_box_of_their_own(
    chromium: Browser, write: Callable[..., Page], tmp_path: Path
) -> None:
    rows, k = make_blobs(300, centers=25, random_state=0)
    y = np.array([f"a class of a long name {label}" for label in k])
    write(GaussianNB().fit(rows, y), rows, y, theme="auto")
    for width in (1280, 390):
        chromium.open(tmp_path / "report.html", width=width)
        assert chromium.value("document.documentElement.scrollWidth") == width
        box = "document.querySelector('.confusion').parentElement"
        assert chromium.value(f"{box}.className") == "scroll"
    assert chromium.value(f"{box}.scrollWidth > {box}.clientWidth")


@pytest.mark.parametrize(
    "smuggled",
    [
        "<script>document.title = 'ran'</script>",
        "<img src='https://example.org/x.png' alt='x'>",
        "<link rel='stylesheet' href='other.css'>",
        "<p onclick='1'>x</p><img src=x onerror='document.title = \"ran\"'>",
    ],
)
def test_the_policy_stops_what_escaping_would_miss(
    chromium: Browser, write: Callable[..., Page], tmp_path: Path, smuggled: str
) -> None:
    """And so the tests above are able to fail."""
    found = write(FITTED, X, Y)
    path = tmp_path / "smuggled.html"
    path.write_text(re.sub("</main>", lambda _: smuggled + "</main>", found.source))
    chromium.open(path)
    assert chromium.complaints()
    assert chromium.value("document.title") == "LinearSVC"
