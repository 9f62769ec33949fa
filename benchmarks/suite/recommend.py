"""What a diagnosis recommends beside the best of a search over scikit-learn's models."""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import maxmargin as mm
from benchmarks import datasets, pictures
from benchmarks.measure import spread
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table

ROWS = 2000  # to learn from, at most
TESTED = 5000
TARGET = 0.01  # of accuracy
SETS = (
    "sonar", "heart_scale", "breast-cancer", "diabetes", "fourclass", "german.numer", "a1a",
    "svmguide1", "higgs-7k", "mushrooms", "magic04", "ijcnn1", "satimage", "usps", "pendigits",
    "shuttle", "covtype", "reuters-money-fx",
)  # fmt: skip


class Case(NamedTuple):
    """Test accuracies on one set, a number for each split."""

    name: str
    verdict: str
    ours: Any
    theirs: Any
    seconds: tuple[float, float]

    @property
    def behind(self) -> float:
        """By how much the recommendation is behind, on average over the splits."""
        return float(np.mean(self.theirs - self.ours))


def run(options: Options) -> Report:
    """Compare on every set that can be had."""
    report = Report("recommend")
    chosen = options.chosen(SETS)
    splits = 1 if options.quick else min(options.repeats, 3)
    cases = [
        compared(dataset, splits, options.rows or ROWS)
        for dataset in datasets.available(chosen, options.data, options.quick)
    ]
    if not cases:
        report.notes.append("no set could be had")
        return report
    report.tables.append(_table(cases, splits))
    report.checks += [
        Check(
            "target",
            f"{case.name}: at most {TARGET:.0%} behind the search",
            bool(case.behind <= TARGET),
            f"{case.behind:+.2%} behind ({case.verdict})",
        )
        for case in cases
    ]
    bars = {c.name: (spread(100 * (c.ours - c.theirs)), -100 * TARGET) for c in cases}
    report.draw = lambda: pictures.lying_bars({"recommended − search": bars}, "accuracy, points")
    return report


def compared(dataset: datasets.Dataset, splits: int, rows: int) -> Case:
    """Learn from some rows and test on others, by turns."""
    print(f"recommend: {dataset.name}", flush=True)
    X = dataset.X.toarray() if dataset.sparse and dataset.X.shape[1] <= 300 else dataset.X
    y = np.asarray(dataset.y)
    ours, theirs, verdicts, seconds = [], [], [], np.zeros(2)
    for seed in range(splits):
        train = min(rows, int(0.7 * len(y)))
        parts = train_test_split(
            X, y, train_size=train, test_size=min(TESTED, len(y) - train), random_state=seed
        )
        X_train, X_test, y_train, y_test = parts
        begun = time.perf_counter()
        diagnosis = mm.diagnose(X_train, y_train, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours.append(diagnosis.recommend().fit(X_train, y_train).score(X_test, y_test))
            seconds[0] += time.perf_counter() - begun
            begun = time.perf_counter()
            theirs.append(searched(X_train, y_train).score(X_test, y_test))
            seconds[1] += time.perf_counter() - begun
        verdicts.append(diagnosis.verdict)
    said = ", ".join(dict.fromkeys(verdicts))
    return Case(dataset.name, said, np.array(ours), np.array(theirs), tuple(seconds / splits))


def searched(X: Any, y: Any) -> Any:
    """Return the best of scikit-learn's kernel, linear, local and layered models, by five folds."""
    sparse = hasattr(X, "toarray")
    scaler = MaxAbsScaler if sparse else StandardScaler
    width = 1.0 / X.shape[1]
    costs = {"C": np.logspace(-2, 3, 6)}
    models: list[tuple[Any, dict[str, Any]]] = [
        (SVC(), {"C": np.logspace(-1, 3, 5), "gamma": width * np.logspace(-2, 1.5, 6)}),
        (LinearSVC(), costs),
        (LogisticRegression(max_iter=1000), costs),
        (KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 9, 15, 25]}),
    ]
    if not sparse:
        layers = {"hidden_layer_sizes": [(32,), (100,)], "alpha": [1e-4, 1e-2, 1.0]}
        models.append((MLPClassifier(max_iter=300, random_state=0), layers))
    best = None
    for model, grid in models:
        pipeline = make_pipeline(scaler(), model)
        name = pipeline.steps[-1][0]
        named = {f"{name}__{key}": list(values) for key, values in grid.items()}
        search = GridSearchCV(pipeline, named, n_jobs=2).fit(X, y)
        if best is None or search.best_score_ > best.best_score_:
            best = search
    return best


def _table(cases: list[Case], splits: int) -> Table:
    rows: list[list[Cell]] = [
        [
            case.name,
            case.verdict,
            f"{case.ours.mean():.4f}",
            f"{case.theirs.mean():.4f}",
            f"{100 * (case.ours - case.theirs).mean():+.2f}",
            f"{case.seconds[0]:.1f}",
            f"{case.seconds[1]:.1f}",
        ]
        for case in cases
    ]
    headings = ("set", "verdict", "recommended", "search", "points", "ours, s", "search, s")
    return Table(f"test accuracy, mean of {splits} splits", headings, rows)
