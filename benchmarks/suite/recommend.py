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
from collections.abc import Callable, Mapping
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
from benchmarks import datasets, pictures
from benchmarks.measure import Spread
from benchmarks.options import RESULTS, Options
from benchmarks.report import Cell, Check, Kept, Report, Table

ROWS = 2000  # of a set, at most
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


class Fold(NamedTuple):
    """One fold of one set and one family: for each tested row its class, and who was right."""

    family: str
    verdict: str
    scoring: str
    classes: list[int]
    ours: list[bool]
    search: list[bool]
    model: str  # that was recommended
    peer: str  # that the search took
    seconds: tuple[float, float]  # of the diagnosis and the fit, and of the search


class Case(NamedTuple):
    """All folds of one set and one family."""

    name: str
    folds: list[Fold]

    def _right(self, side: str) -> Any:
        return np.concatenate([getattr(fold, side) for fold in self.folds]).astype(float)

    @property
    def scores(self) -> tuple[float, float]:
        """The scores of the recommendation and of the search over all tested rows."""
        return self._mean(self._right("ours"))[0], self._mean(self._right("search"))[0]

    @property
    def behind(self) -> tuple[float, float]:
        """By how much the recommendation is behind, and the standard error of that."""
        return self._mean(self._right("search") - self._right("ours"))

    @property
    def holds(self) -> bool:
        """Whether it is not behind by more than is allowed or can be told."""
        behind, error = self.behind
        return behind <= max(TARGET, 2 * error)

    def _mean(self, values: Any) -> tuple[float, float]:
        """Return the mean over rows, or over classes of the means of their rows, and its error."""
        classes = np.concatenate([fold.classes for fold in self.folds])
        if self.folds[0].scoring == "accuracy":
            classes = np.zeros_like(classes)
        groups = [values[classes == k] for k in np.unique(classes)]
        means = [float(np.mean(group)) for group in groups]
        variances = [float(np.var(group)) / len(group) for group in groups]
        return float(np.mean(means)), float(np.sqrt(np.sum(variances))) / len(groups)


def run(options: Options) -> Report:
    """Compare on every set that can be had."""
    report = Report("recommend")
    cases: dict[str, list[Case]] = {MARGINS: [], ANY: []}
    rows = 300 if options.quick else options.rows or ROWS
    folds = 2 if options.quick else min(options.repeats, FOLDS)
    file = (options.out or RESULTS) / "recommend.cells.jsonl"
    kept = Kept(file, f"{rows} rows, {folds} folds")
    for name in options.chosen([*MADE, *REAL]):
        found = kept.get(name)
        if found is None and (data := loaded(name, options.data, rows)):
            try:
                found = kept.add(name, compared(*data, folds))
            except Exception as error:  # one set that fails must not cost the others their figures
                claim = f"{name}: there is a recommendation"
                report.checks.append(Check("target", claim, False, f"{error!r}"))
        for family in cases if found else ():
            case = Case(name, [Fold(*fold) for fold in found if fold[0] == family])
            print(f"recommend: {name}, {family}: {-100 * case.behind[0]:+.2f} points", flush=True)
            cases[family].append(case)
    if not cases[MARGINS]:
        report.notes.append("no set could be had")
        return report
    for family, done in cases.items():
        report.tables.append(_table(done, family))
        report.checks += _checks(done, family)
    bars = {case.name: (_bar(case), -100 * TARGET) for case in cases[MARGINS]}
    report.draw = lambda: pictures.lying_bars(bars, "recommended − search, points")
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


def compared(X: Any, y: Any, folds: int) -> list[Fold]:
    """Learn from some rows and test on others, by turns; two folds at a time."""
    enough = max(1, min(folds, -(-TESTED * FOLDS // len(y))))
    parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))[:enough]
    found = Parallel(n_jobs=2)(
        delayed(tested)(X, y, train, test, seed) for seed, (train, test) in enumerate(parts)
    )
    return [fold for each in found for fold in each]


def tested(X: Any, y: Any, train: Any, test: Any, seed: int) -> list[Fold]:
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
        inner = StratifiedKFold(INNER, shuffle=True, random_state=seed)
        searches = {
            name: GridSearchCV(pipeline, grid, scoring=diagnosis.scoring, cv=inner)
            for name, (pipeline, grid) in _peers(X[train], y[train], diagnosis.scoring).items()
        }
        scores = {name: s.fit(X[train], y[train]).best_score_ for name, s in searches.items()}
        seconds = ended - begun, time.process_time() - ended
        found = []
        for family, model in ours.items():
            rivals = [name for name in scores if family == ANY or name != TREES]
            best = max(rivals, key=lambda name: float(scores[name]))
            about = family, str(diagnosis.verdict), str(diagnosis.scoring), y[test].tolist()
            last = model[-1] if isinstance(model, Pipeline) else model
            names = type(last).__name__, best
            found.append(Fold(*about, right(model), right(searches[best]), *names, seconds))
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


def _bar(case: Case) -> Spread:
    behind, error = (100 * value for value in case.behind)
    return Spread(-behind, -behind - error, -behind + error, len(case.folds), len(case.folds))


def _checks(cases: list[Case], family: str) -> list[Check]:
    held = sum(case.holds for case in cases)
    claim = f"{family}: {SHARE:.0%} of the sets hold"
    checks = [Check("target", claim, held >= SHARE * len(cases), f"{held} of {len(cases)}")]
    for case in (case for case in cases if not case.holds):
        claim = f"{case.name}, {family}: within {TARGET:.0%} or two standard errors of the search"
        found = "{:+.2%} ± {:.2%} behind".format(*case.behind)
        checks.append(Check("target", claim, False, found))
    return checks


def _table(cases: list[Case], family: str) -> Table:
    def each(case: Case, what: str) -> str:
        return "; ".join(dict.fromkeys(getattr(fold, what) for fold in case.folds))

    rows: list[dict[str, Cell]] = [
        {
            "set": case.name,
            "verdict": each(case, "verdict"),
            "recommended": each(case, "model"),
            "search took": each(case, "peer"),
            "score": each(case, "scoring").replace("_", " "),
            "ours": f"{case.scores[0]:.4f}",
            "search": f"{case.scores[1]:.4f}",
            "points": f"{-100 * case.behind[0]:+.2f} ± {100 * case.behind[1]:.2f}",
            "held": "yes" if case.holds else "NO",
            "ours, CPU s": float(np.mean([fold.seconds[0] for fold in case.folds])),
            "search, CPU s": float(np.mean([fold.seconds[1] for fold in case.folds])),
        }
        for case in cases
    ]
    return Table(f"family {family}: score on rows not seen", rows)
