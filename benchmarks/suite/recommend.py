"""What a diagnosis recommends beside the best of a quick search over scikit-learn's models.

Every set is cut to 2,000 rows and five folds, as many of which are tested as it takes to test
1,000 rows. Both sides see the training rows of a fold only. The search tries LinearSVC, SVC with an
RBF kernel, k-NN and naive Bayes, each with its grid, and takes what scores best by three inner
folds; ``recommend(family="any")`` has HistGradientBoosting against it as well. The score is the one
that the diagnosis states (accuracy, or balanced accuracy).

A set is held if the recommendation is at most a point behind, or at most two standard errors of the
paired difference over the tested rows. Sets that were done are not done again while the package
and the sizes are the same (recommend.cells.jsonl beside the results).
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.datasets
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import maxmargin as mm
from benchmarks import datasets
from benchmarks.options import RESULTS, Options
from benchmarks.report import Cell, Check, Kept, Report, Table

ROWS, QUICK_ROWS = 2000, 300  # of a set, at most
FOLDS = 5
TESTED = 1000  # rows are enough to tell a point's difference
INNER = 3  # folds by which the search chooses
FEWEST = 2 * FOLDS  # rows of a class; smaller ones are left out
DENSE = 300  # columns up to which sparse rows are made dense
WIDE = 2000  # columns times classes from which a fit takes long: half grids, and no boosted trees
TARGET = 0.01  # of the score
SHARE = 0.9  # of the sets that must hold
REAL = (
    "sonar", "heart_scale", "breast-cancer", "diabetes", "fourclass", "german.numer", "a1a",
    "svmguide1", "higgs-7k", "reuters-money-fx", "mushrooms", "magic04", "a9a", "ijcnn1",
    "kddcup99-10pct", "satimage", "usps", "pendigits", "20newsgroups-bydate", "news20", "shuttle",
    "mnist", "covtype",
)  # fmt: skip
MADE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": lambda: sklearn.datasets.load_iris(return_X_y=True),
    "wine": lambda: sklearn.datasets.load_wine(return_X_y=True),
    "wdbc": lambda: sklearn.datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: sklearn.datasets.load_digits(return_X_y=True),
    "gaussians": lambda: mm.datasets.gaussians(400, variance=3.0),
    "overlapping": lambda: mm.datasets.overlapping(1000, 5, 0.25),
    "rare-plane": lambda: mm.datasets.overlapping(1000, 5, 0.06, balance=0.08),
    "rare-circle": lambda: mm.datasets.circles(600, balance=0.1),
    "moons": lambda: mm.datasets.moons(400, 0.5),
    "spirals": lambda: mm.datasets.spirals(400, noise=0.3),
}
MARGINS, ANY = "large margin", "any"  # what may be recommended, and what it is compared with
TREES = "HistGradientBoosting"  # rivals of any family only


class Case(NamedTuple):
    """One set and one family: for each tested row its class and who was right."""

    name: str
    family: str
    scoring: str  # the metric that the diagnosis stated
    classes: list[int]
    ours: list[bool]
    search: list[bool]
    said: dict[str, Cell]  # further cells of its row

    @property
    def scores(self) -> tuple[float, float]:
        """The scores of the recommendation and of the search."""
        return self._mean(np.array(self.ours, float))[0], self._mean(np.array(self.search, float))[
            0
        ]

    @property
    def behind(self) -> tuple[float, float]:
        """By how much the recommendation is behind, and the standard error of that."""
        return self._mean(np.subtract(self.search, self.ours, dtype=float))

    @property
    def holds(self) -> bool:
        """Whether it is not behind by more than is allowed or can be told."""
        behind, error = self.behind
        return behind <= max(TARGET, 2 * error)

    def _mean(self, values: Any) -> tuple[float, float]:
        """Return the mean over rows, or over classes of the means of their rows, and its error."""
        classes = np.array(self.classes) * (self.scoring != "accuracy")
        groups = [values[classes == k] for k in np.unique(classes)]
        variances = [float(np.var(group)) / len(group) for group in groups]
        mean = float(np.mean([np.mean(group) for group in groups]))
        return mean, float(np.sqrt(np.sum(variances))) / len(groups)

    def row(self) -> dict[str, Cell]:
        """Return the set's row of the table."""
        return {
            "set": self.name,
            **self.said,
            "metric": self.scoring.replace("_", " "),
            "ours": f"{self.scores[0]:.4f}",
            "search": f"{self.scores[1]:.4f}",
            "points": f"{-100 * self.behind[0]:+.2f} ± {100 * self.behind[1]:.2f}",
            "held": "yes" if self.holds else "NO",
        }


def run(options: Options) -> Report:
    """Compare on every set that can be had."""
    report = Report("recommend")
    cases: list[Case] = []
    rows = options.at_most(ROWS, QUICK_ROWS)
    folds = 2 if options.quick else min(options.repeats, FOLDS)
    file = (options.out or RESULTS) / "recommend.cells.jsonl"
    kept = Kept(file, f"{rows} rows, {folds} folds")
    for name in options.chosen([*MADE, *REAL]):
        found = kept.get(name)
        if found is None and (data := loaded(name, options.data, rows)):
            try:
                found = kept.add(name, compared(name, *data, folds))
            except Exception as error:  # one set that fails must not cost the others their figures
                claim = f"{name}: there is a recommendation"
                report.checks.append(Check("target", claim, False, repr(error)))
        for case in (Case(*each) for each in found or ()):
            print(f"recommend: {name}, {case.family}: {case.row()['points']} points", flush=True)
            cases.append(case)
    for family in (MARGINS, ANY) if cases else ():
        done = [case for case in cases if case.family == family]
        title = f"family {family}: score on rows not seen"
        report.tables.append(Table(title, [case.row() for case in done]))
        held = sum(case.holds for case in done)
        claim = f"{family}: {SHARE:.0%} of the sets are within {TARGET:.0%} or two standard errors"
        found = f"{held} of {len(done)}"
        report.checks.append(Check("target", claim, held >= SHARE * len(done), found))
    return report


def loaded(name: str, folder: Path | None, rows: int) -> tuple[Any, Any] | None:
    """Return at most so many rows of a set, and their labels; None if it cannot be had."""
    if name in MADE:
        return drawn(*MADE[name](), rows)
    for found in datasets.available([name], folder):
        return drawn(found.X, found.y, rows)
    return None


def drawn(X: Any, y: Any, rows: int) -> tuple[Any, Any]:
    """Return at most so many rows, stratified, without classes too small to be in every fold."""
    codes = np.unique(y, return_inverse=True)[1]
    for _ in range(2):  # a class may be large enough before rows are drawn, but not after
        kept = np.flatnonzero(np.bincount(codes)[codes] >= FEWEST)
        X, codes = X[kept], np.unique(codes[kept], return_inverse=True)[1]
        if len(codes) > rows:
            X, _, codes, _ = train_test_split(
                X, codes, train_size=rows, stratify=codes, random_state=0
            )
    if hasattr(X, "toarray") and X.shape[1] <= DENSE:
        X = X.toarray()
    return X, codes


def compared(name: str, X: Any, y: Any, folds: int) -> list[Case]:
    """Learn from some rows and test on others, by turns; two folds at a time."""
    enough = max(1, min(folds, -(-TESTED * FOLDS // len(y))))
    parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))[:enough]
    found = Parallel(n_jobs=2)(
        delayed(tested)(name, X, y, train, test, seed) for seed, (train, test) in enumerate(parts)
    )
    return [_joined(folds_of_family) for folds_of_family in zip(*found, strict=True)]


def _joined(folds: Sequence[Case]) -> Case:
    """Return several folds of a set as one."""
    classes = [label for fold in folds for label in fold.classes]
    ours = [right for fold in folds for right in fold.ours]
    search = [right for fold in folds for right in fold.search]
    said: dict[str, Cell] = {
        column: "; ".join(dict.fromkeys(str(fold.said[column]) for fold in folds))
        for column in ("verdict", "recommended", "search took")
    }
    for column in ("ours, CPU s", "search, CPU s"):
        said[column] = sum(float(str(fold.said[column])) for fold in folds) / len(folds)
    return folds[0]._replace(classes=classes, ours=ours, search=search, said=said)


def tested(name: str, X: Any, y: Any, train: Any, test: Any, seed: int) -> list[Case]:
    """Diagnose and search on the training rows, and see who is right on the others."""

    def right(model: Any) -> list[bool]:
        return [bool(value) for value in model.predict(X[test]) == y[test]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        diagnosis = mm.diagnose(X[train], y[train], random_state=seed)
        recommended = {MARGINS: diagnosis.recommend(), ANY: diagnosis.recommend(family="any")}
        ours = {family: model.fit(X[train], y[train]) for family, model in recommended.items()}
        ended = time.process_time()
        scoring = str(diagnosis.scoring)
        inner = StratifiedKFold(INNER, shuffle=True, random_state=seed)
        searches = {
            peer: GridSearchCV(pipeline, grid, scoring=scoring, cv=inner).fit(X[train], y[train])
            for peer, (pipeline, grid) in _peers(X[train], y[train], scoring).items()
        }
        said: dict[str, Cell] = {"verdict": str(diagnosis.verdict), "ours, CPU s": ended - begun}
        said["search, CPU s"] = time.process_time() - ended
        found = []
        for family, model in ours.items():
            rivals = [peer for peer in searches if family == ANY or peer != TREES]
            best = max(rivals, key=lambda peer: float(searches[peer].best_score_))
            last = model[-1] if isinstance(model, Pipeline) else model
            words: dict[str, Cell] = {"recommended": type(last).__name__, "search took": best}
            sides = y[test].tolist(), right(model), right(searches[best])
            found.append(Case(name, family, scoring, *sides, said | words))
        return found


def _peers(X: Any, y: Any, scoring: str) -> dict[str, tuple[Pipeline, dict[str, Any]]]:
    sparse = hasattr(X, "toarray")
    scaler = MaxAbsScaler() if sparse else StandardScaler()
    either = {"scale": ["passthrough", scaler]}
    weights = {"model__class_weight": [None, "balanced"] if scoring != "accuracy" else [None]}
    wide = X.shape[1] * len(np.unique(y)) > WIDE
    step = 2 if wide else 1
    gammas = np.logspace(-1.5, 0.9, 4) / (1.0 if sparse else X.shape[1])
    machine = {
        "model__C": [1.0, 10.0, 100.0][::step],
        "model__gamma": list(gammas[::step]),
        **weights,
    }
    plane = {"model__C": list(np.logspace(-3, 1, 5)[::step]), **weights}
    peers: dict[str, tuple[Any, Any, Mapping[str, Any]]] = {
        "LinearSVC": (scaler, LinearSVC(max_iter=2000), plane | (either if sparse else {})),
        "RBF SVC": ("passthrough" if sparse else scaler, SVC(), machine),
        "k-NN": (scaler, KNeighborsClassifier(), {"model__n_neighbors": [1, 5, 15, 31], **either}),
    }
    if not sparse:
        peers["GaussianNB"] = ("passthrough", GaussianNB(), {})
        if not wide:
            trees = HistGradientBoostingClassifier(random_state=0)
            grid = {"model__max_leaf_nodes": [7, 31], **weights}
            peers[TREES] = ("passthrough", trees, grid)
    return {
        name: (Pipeline([("scale", scale), ("model", model)]), dict(grid))
        for name, (scale, model, grid) in peers.items()
    }
