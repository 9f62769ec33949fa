"""What a diagnosis recommends beside the best of a quick search over scikit-learn's models.

Every set is cut to 2,000 rows and five folds, as many of which are tested as it takes to test
1,000 rows. Both sides see the training rows of a fold only. The search tries LinearSVC, SVC with an
RBF kernel, k-NN and naive Bayes, each with its grid, and takes what scores best by three inner
folds; ``recommend(family="any")`` has HistGradientBoosting against it as well. The score is the one
that the diagnosis states (accuracy, or balanced accuracy).

A set is held if the recommendation is at most a point behind, or at most two standard errors of the
paired difference over the tested rows. Sets that were done are not done again while the package
and the sizes are the same (recommend.partial.jsonl beside the results).
"""

import inspect
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.suite.linear_table import fingerprint

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


@dataclass(frozen=True)
class Fold:
    """One fold of one set: for each tested row its class, and who was right."""

    verdict: str
    scoring: str
    classes: list[int]
    ours: dict[str, list[bool]]
    search: dict[str, list[bool]]
    model: dict[str, str]
    peer: dict[str, str]
    seconds: dict[str, float]


@dataclass(frozen=True)
class Case:
    """All folds of one set, or why there are none."""

    name: str
    folds: list[Fold]
    error: str = ""

    @property
    def scoring(self) -> str:
        """The metric that the diagnoses stated."""
        return self.folds[0].scoring

    @property
    def families(self) -> list[str]:
        """What was asked for: large margins, and anything if the diagnosis can recommend it."""
        return list(self.folds[0].ours)

    def scores(self, side: str, family: str) -> float:
        """Return the score of ``ours`` or of the ``search`` over all tested rows."""
        return self._mean(np.concatenate([getattr(f, side)[family] for f in self.folds]))[0]

    def behind(self, family: str) -> tuple[float, float]:
        """Return by how much the recommendation is behind, and the standard error of that."""
        return self._mean(
            np.concatenate(
                [np.subtract(f.search[family], f.ours[family], dtype=int) for f in self.folds]
            )
        )

    def holds(self, family: str) -> bool:
        """Return whether it is not behind by more than is allowed or can be told."""
        if self.error:
            return False
        behind, error = self.behind(family)
        return behind <= max(TARGET, 2 * error)

    def _mean(self, values: Any) -> tuple[float, float]:
        """Return the mean over rows, or over classes of the means of their rows, and its error."""
        classes = np.concatenate([fold.classes for fold in self.folds])
        if self.scoring == "accuracy":
            classes = np.zeros_like(classes)
        groups = [values[classes == k] for k in np.unique(classes)]
        means = [float(np.mean(group)) for group in groups]
        variances = [float(np.var(group)) / len(group) for group in groups]
        return float(np.mean(means)), float(np.sqrt(np.sum(variances))) / len(groups)


def run(options: Options) -> Report:
    """Compare on every set that can be had."""
    report = Report("recommend")
    cases = []
    rows = 300 if options.quick else options.rows or ROWS
    known = Known(options.out, f"{rows} rows, {_folds(options)} folds, {fingerprint()}")
    for name in options.chosen([*MADE, *REAL]):
        case = known.get(name)
        if case is None:
            data = loaded(name, options.data, rows)
            if data is None:
                continue
            case = compared(name, *data, _folds(options))
            known.add(case)
        print(f"recommend: {name}: {_summary(case)}", flush=True)
        cases.append(case)
    if not cases:
        report.notes.append("no set could be had")
        return report
    report.notes += [f"{case.name}: {case.error}" for case in cases if case.error]
    done = [case for case in cases if not case.error]
    for family in done[0].families if done else []:
        report.tables.append(_table(done, family))
        report.checks += _checks(cases, family)
    bars = {case.name: (_bar(case), -100 * TARGET) for case in done}
    report.draw = lambda: pictures.lying_bars({"recommended − search": bars}, "points")
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


def compared(name: str, X: Any, y: Any, folds: int) -> Case:
    """Learn from some rows and test on others, by turns; two folds at a time."""
    enough = max(1, min(folds, -(-TESTED * FOLDS // len(y))))
    parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))[:enough]
    try:
        found = Parallel(n_jobs=2)(
            delayed(tested)(X, y, train, test, seed) for seed, (train, test) in enumerate(parts)
        )
    except Exception as error:  # one set that fails must not cost the others their figures
        return Case(name, [], f"{type(error).__name__}: {error}")
    return Case(name, found)


def tested(X: Any, y: Any, train: Any, test: Any, seed: int) -> Fold:
    """Diagnose and search on the training rows, and see who is right on the others."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diagnosis = mm.diagnose(X[train], y[train], random_state=seed)
        ours = {
            family: model.fit(X[train], y[train])
            for family, model in recommended(diagnosis).items()
        }
        ended = time.process_time()
        scoring = str(getattr(diagnosis, "scoring", "accuracy"))
        searches = searched(X[train], y[train], scoring, seed, trees=ANY in ours)
        seconds = {"ours": ended - begun, "search": time.process_time() - ended}
        best = {family: _best(searches, family) for family in ours}

        def right(model: Any) -> list[bool]:
            return (model.predict(X[test]) == y[test]).tolist()  # type: ignore[no-any-return]

        return Fold(
            str(diagnosis.verdict),
            scoring,
            y[test].tolist(),
            {family: right(model) for family, model in ours.items()},
            {family: right(searches[name]) for family, name in best.items()},
            {family: _name(model) for family, model in ours.items()},
            best,
            seconds,
        )


def recommended(diagnosis: Any) -> dict[str, Any]:
    """Return what is recommended of each family."""
    models = {MARGINS: diagnosis.recommend()}
    if "family" in inspect.signature(diagnosis.recommend).parameters:
        models[ANY] = diagnosis.recommend(family="any")
    return models


def searched(X: Any, y: Any, scoring: str, seed: int, *, trees: bool) -> dict[str, Any]:
    """Return each of scikit-learn's models with the settings that score best."""
    folds = StratifiedKFold(INNER, shuffle=True, random_state=seed)
    return {
        name: GridSearchCV(pipeline, grid, scoring=scoring, cv=folds).fit(X, y)
        for name, (pipeline, grid) in _peers(X, y, scoring).items()
        if trees or name != TREES
    }


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


def _best(searches: Mapping[str, Any], family: str) -> str:
    rivals = [name for name in searches if family == ANY or name != TREES]
    return max(rivals, key=lambda name: float(searches[name].best_score_))


def _name(model: Any) -> str:
    return type(model[-1] if isinstance(model, Pipeline) else model).__name__


def _folds(options: Options) -> int:
    return 2 if options.quick else min(options.repeats, FOLDS)


class Known:
    """Sets that were compared already, on disk: a run that was ended goes on where it was."""

    def __init__(self, folder: Path | None, of: str) -> None:
        self._of = of
        self._file = None if folder is None else folder / "recommend.partial.jsonl"
        self._cases: dict[str, Case] = {}
        if self._file is None or not self._file.exists():
            return
        for line in self._file.read_text("utf-8").splitlines():
            if line.endswith("}") and (said := json.loads(line)).pop("of") == of:
                folds = [Fold(**fold) for fold in said.pop("folds")]
                self._cases[said["name"]] = Case(folds=folds, **said)

    def get(self, name: str) -> Case | None:
        """Return what is known of a set."""
        return self._cases.get(name)

    def add(self, case: Case) -> None:
        """Write a set down, unless it failed."""
        if self._file is None or case.error:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"of": self._of, **asdict(case)}) + "\n")


def _summary(case: Case) -> str:
    if case.error:
        return case.error
    return "; ".join(
        f"{family}: {-100 * case.behind(family)[0]:+.2f} points" for family in case.families
    )


def _bar(case: Case) -> Spread:
    behind, error = (100 * value for value in case.behind(MARGINS))
    return Spread(-behind, -behind - error, -behind + error, len(case.folds), len(case.folds))


def _checks(cases: list[Case], family: str) -> list[Check]:
    held = sum(case.holds(family) for case in cases)
    single = [
        Check(
            "target",
            f"{case.name}, {family}: within {TARGET:.0%} or two standard errors of the search",
            case.holds(family),
            case.error or "{:+.2%} ± {:.2%} behind".format(*case.behind(family)),
        )
        for case in cases
    ]
    return [
        Check(
            "target",
            f"{family}: {SHARE:.0%} of the sets hold",
            held >= SHARE * len(cases),
            f"{held} of {len(cases)}",
        ),
        *(check for check in single if not check.holds),
    ]


def _table(cases: list[Case], family: str) -> Table:
    rows: list[list[Cell]] = []
    for case in cases:
        behind, error = case.behind(family)
        rows.append(
            [
                case.name,
                "; ".join(dict.fromkeys(fold.verdict for fold in case.folds)),
                "; ".join(dict.fromkeys(fold.model[family] for fold in case.folds)),
                "; ".join(dict.fromkeys(fold.peer[family] for fold in case.folds)),
                case.scoring.replace("_", " "),
                f"{case.scores('ours', family):.4f}",
                f"{case.scores('search', family):.4f}",
                f"{-100 * behind:+.2f} ± {100 * error:.2f}",
                "yes" if case.holds(family) else "NO",
                f"{np.mean([fold.seconds['ours'] for fold in case.folds]):.1f}",
                f"{np.mean([fold.seconds['search'] for fold in case.folds]):.1f}",
            ]
        )
    headings = (
        "set", "verdict", "recommended", "search took", "score", "ours", "search", "points",
        "held", "ours, CPU s", "search, CPU s",
    )  # fmt: skip
    return Table(f"family {family}: score on rows not seen", headings, rows)
