"""Grid search that does once what its fits have in common."""

import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import sklearn
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.model_selection._validation import _score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _check_method_params, _num_samples

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.kernels import Kernel
from maxmargin.model_selection.search.contenders import Standings
from maxmargin.model_selection.search.lazy_model import Fold, LazyModel
from maxmargin.model_selection.search.metrics import Metric, find_metrics
from maxmargin.model_selection.search.plan import (
    Family,
    Split,
    View,
    find_obstacle,
    group,
    steps_of,
    views,
)
from maxmargin.model_selection.search.shared_gram import (
    Job,
    SharedGram,
    SolvedJob,
    find_shortage,
    state_jobs,
    suits_matrix,
)
from maxmargin.problems.gram import free_memory
from maxmargin.progress import Bar, progress
from maxmargin.threads import one_blas_thread
from maxmargin.validation.parameters import check_choice, check_flag, check_number

# Scorings whose largest value is 1, by the beginning of their name.
_AT_MOST_ONE = ("balanced_", "accuracy", "f1", "precision", "recall", "jaccard", "roc_auc", "r2")


class SVCSearchCV(GridSearchCV):  # type: ignore[misc, unused-ignore]
    """Grid search with cross-validation, for support vector machines: the same answer, sooner.

    Constructor, methods and attributes are those of ``sklearn.model_selection.GridSearchCV``. For
    ``SVC`` and ``SVR`` with a positive semidefinite kernel, alone or at the end of a pipeline, the
    kernel matrix of each kernel setting is computed once and serves all splits and all C; each C
    starts from the solution of the one before. Candidates that may win are solved to the
    estimator's ``tol``, others to wider relative duality gaps (see ``refine``); all gaps are in the
    results. ``LinearSVC``, ``LinearSVR``, linear kernels and matrices too large for the memory are
    fitted in order of rising C, each fit starting from the last. Anything else is searched just as
    GridSearchCV does; ``sharing_`` says which it was.

    Parameters
    ----------
    estimator : estimator
        What to tune, such as ``SVC()`` or ``make_pipeline(StandardScaler(), SVC())``.
    param_grid : dict or list of dict
        The values to try, by the name of the parameter.
    scoring : str, callable, list, tuple or dict, default=None
        As in GridSearchCV.
    n_jobs : int or None, default=None
        Threads; None: 1, -1: all processors.
    refit : bool, str or callable, default=True
        Whether, and by which score, the best candidate is fitted to all rows.
    cv : int, splitter or iterable, default=None
        The splits; None: 5 folds, stratified for classifiers.
    verbose : int, default=0
        1: print how many fits there will be; 2: also print a line for each fit.
    pre_dispatch : int or str, default="2*n_jobs"
        As in GridSearchCV, and used only if nothing is shared.
    error_score : "raise" or number, default=nan
        The score of a fit that fails.
    return_train_score : bool, default=False
        Whether training rows are scored as well.
    abandon : bool, default=False
        Whether a candidate is given up once it cannot win any more, even if its scores in the
        remaining splits were the best possible. Its score is then NaN, and ``abandoned`` in the
        results is True. The winner is the same. Needs a single scoring with a largest value.
    memory : int or "auto", default="auto"
        Bytes that a kernel matrix, and copies of parts of it, may take; "auto": half of the free
        memory.
    refine : "contenders" or "all", default="contenders"
        Which fits on a kernel matrix are solved to ``tol``. "all": every one, so that all scores
        are those of GridSearchCV. "contenders": all are solved to a relative gap of 0.01 first, and
        those that may win are refined to ``tol``, from where they stand. The best
        score and its candidate, and those of all candidates that may win, are then as precise as
        with "all"; the scores of others are those of fits with the gaps that the results tell. See
        the notes on when a candidate is out. Fits to few rows, and fits with ``abandon=True``, with
        a callable ``refit``, or with several scorings and no ``refit``, are all solved to ``tol``.

    Attributes
    ----------
    cv_results_ : dict
        As in GridSearchCV; where work was shared also ``max_relative_gap`` over the splits, which
        is at most ``tol`` where a candidate was solved to that, and with ``abandon=True`` whether a
        candidate was ``abandoned``. Times of fits that share work are their share of it.
    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_ :
        As in GridSearchCV. ``best_estimator_`` was fitted by itself and has its own certificate.
    multimetric_ : bool
        Whether there are several scorings.
    sharing_ : str
        What the fits shared, or why they shared nothing; and how many candidates were solved to
        ``tol``, if not all.

    Notes
    -----
    With ``refine="contenders"`` the best tenth of the candidates at a gap of 0.01, and at least
    five, are solved to ``tol``. A candidate is out if it would not reach the best score of these
    even if its own rose by twice the largest change that any of them has seen, plus the weight of
    three scored rows. Those that are not out are solved to ``tol`` as well, which may show larger
    changes and bring others in again, until none is left. This is a measurement, not a proof: the
    winner is another than with ``refine="all"`` if the score of a candidate that is out changes
    that much more than those of all the others did. (Proven bounds exist: at an absolute gap g the
    score of a row x is off by at most √(2g·K(x, x)). At gaps of this size they exclude next to
    nothing.) What the winner scores is not in doubt: it is solved to ``tol``, and so is every
    candidate whose score is as high.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, random_state=0)
    >>> search = mm.SVCSearchCV(mm.SVC(), {"C": [0.1, 1, 10], "gamma": [0.1, 1, 10]}).fit(X, y)
    >>> bool(search.best_score_ > 0.9)
    True
    >>> search.best_estimator_.certificate_.holds(1e-4)
    True
    """

    cv: Any

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        abandon: bool = False,
        memory: int | str = "auto",
        refine: str = "contenders",
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.abandon = abandon
        self.memory = memory
        self.refine = refine

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Score all candidates, and fit the best one to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets.
        **params : dict
            ``sample_weight`` for the fits, ``groups`` for the splitter.

        Returns
        -------
        self
        """
        self._validate_params()
        best_score, memory = self._best_possible_score(), self._memory_limit()
        check_choice(self, "refine", ("contenders", "all"))
        candidates = list(ParameterGrid(self.param_grid))
        models = [clone(self.estimator).set_params(**clone(c, safe=False)) for c in candidates]
        obstacle = self._find_obstacle(y, params, models)
        if obstacle:
            return self._search_plainly(X, y, params, obstacle)
        scorers, metric = self._get_scorers()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params))
        drawn = self._draw_splits(X, y, routed.splitter.split)
        if not drawn:
            return self._search_plainly(X, y, params, "there are no splits")
        fit_params = {k: v for k, v in routed.estimator.fit.items() if v is not None}
        scoring = Scoring(
            scorers,
            find_metrics(self.scoring, is_classifier(self.estimator)),
            routed.scorer.score,
            self.error_score,
            bool(self.return_train_score),
        )
        splits = [_number_rows(k, rows, _num_samples(y)) for k, rows in enumerate(drawn)]
        folds = [Fold(X, y, split, fit_params) for split in splits]
        with progress("Searching", unit="fit", quiet=self.verbose > 1) as bar:
            bar.update(total=len(models) * len(folds) + bool(self.refit))
            racing = Racing(len(folds), best_score)
            run = SearchRun(
                candidates, models, folds, scoring, racing, memory, self.verbose, bar,
                self._deciding_score(scorers),
            )  # fmt: skip
            try:
                run.run(X, y, fit_params.get(_weight_name(self.estimator)), self.n_jobs)
            except Exception as failure:  # whatever a step of a pipeline may raise
                if self.error_score == "raise":
                    raise
                bar.forget()
                return self._search_after_failure(X, y, params, drawn, failure)
            self._conclude(run, metric)
            self.scorer_ = getattr(scorers, "_scorers", scorers)
            if self.refit:
                bar.update(note="the best on all rows")
                self._refit(X, y, fit_params)
        return self

    def _best_possible_score(self) -> float | None:
        """Return the best score there can be, or None if no candidate is to be abandoned."""
        check_flag(self, "abandon")
        if not self.abandon:
            return None
        name = self.scoring
        if name is None or (isinstance(name, str) and name.startswith(_AT_MOST_ONE)):
            return 1.0
        if isinstance(name, str) and name.startswith("neg_"):
            return 0.0
        raise ValueError(
            f"abandon=True needs a scoring whose best value is known, not {name!r}: 'accuracy', "
            "'r2' or another that is at most 1, or one that begins with 'neg_'. Or use "
            "abandon=False."
        )

    def _deciding_score(self, scorers: Any) -> Callable[[Any], float] | None:
        """Return what reads the score by which candidates win; None: all are solved to tol."""
        several = isinstance(scorers, _MultimetricScorer)
        if self.refine == "all" or self.abandon or callable(self.refit):
            return None
        if several and not isinstance(self.refit, str):
            return None
        name = self.refit

        def read(scores: Any) -> float:
            found = scores.get(name, np.nan) if isinstance(scores, dict) else scores
            return float(found)

        return read

    def _memory_limit(self) -> int:
        if isinstance(self.memory, str) and self.memory == "auto":
            return free_memory()
        check_number(self, "memory", at_least=1, integer=True)
        return int(self.memory)

    def _find_obstacle(self, y: Any, params: dict[str, Any], models: list[Any]) -> str:
        """Return why fits cannot share work, or an empty string if they can."""
        if y is None:
            return "there is no y"
        if getattr(y, "ndim", 1) != 1:
            return "y is not one-dimensional"
        if sklearn.get_config().get("enable_metadata_routing"):
            return "metadata routing is on"
        followed = [self, *(step for _, step in steps_of(self.estimator))]
        if any(getattr(each, "_skl_callbacks", None) for each in followed):
            return "callbacks follow each fit separately"
        weight_name = _weight_name(self.estimator)
        others = set(params) - {"groups", weight_name}
        if others:
            return f"fit is given {', '.join(sorted(others))}"
        weight = params.get(weight_name)
        if weight is not None and np.shape(weight) != (_num_samples(y),):
            return f"{weight_name} is not one number for each row"
        obstacles = (find_obstacle(steps_of(model)[-1][1]) for model in models)
        return next(filter(None, obstacles), "")

    def _draw_splits(self, X: Any, y: Any, groups: dict[str, Any]) -> list[tuple[Any, Any]]:
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = cv.get_n_splits(X, y, **groups)
        drawn = list(cv.split(X, y, **groups))
        if len(drawn) != self.n_splits_:
            raise ValueError(
                f"cv={self.cv!r} is not valid: get_n_splits says {self.n_splits_} splits, but "
                f"split gives {len(drawn)}."
            )
        return drawn

    def _search_plainly(self, X: Any, y: Any, params: dict[str, Any], why: str) -> Self:
        """Search as GridSearchCV does."""
        if self.abandon:
            raise ValueError(
                f"abandon=True is not possible for this search: {why}. Use abandon=False."
            )
        self.sharing_ = f"nothing: {why}"
        with progress("Searching", unit="fit", quiet=self.verbose > 1):
            super().fit(X, y, **params)
        return self

    def _search_after_failure(
        self, X: Any, y: Any, params: dict[str, Any], drawn: list[Any], failure: Exception
    ) -> Self:
        """Search as GridSearchCV does, in the splits already drawn: some can be drawn only once."""
        why, given = f"a fit failed ({failure})", self.cv
        try:
            self.cv = drawn
            self._search_plainly(X, y, params, why)
        finally:
            self.cv = given
        means = [v for k, v in self.cv_results_.items() if k.startswith("mean_test_")]
        if np.isfinite(means).all():
            # GridSearchCV fitted everything: it was not the estimator that failed.
            warnings.warn(f"The search shared no work: {why}.", RuntimeWarning, stacklevel=3)
        return self

    def _conclude(self, run: "SearchRun", metric: Any) -> None:
        """Set the results, and choose the best candidate."""
        rows = [[run.results[c, s] for s in range(self.n_splits_)] for c in range(len(run.models))]
        more: dict[str, list[Any]] = {
            "max_relative_gap": [max(each["relative_gap"] for each in row) for row in rows],
        }
        if self.abandon:
            more["abandoned"] = [any(each["abandoned"] for each in row) for row in rows]
        keys = ["fit_time", "score_time", "test_scores"]
        keys += ["train_scores"] if self.return_train_score else []
        out = [{key: each[key] for key in keys} for row in rows for each in row]
        with warnings.catch_warnings():
            if self.abandon:
                warnings.filterwarnings("ignore", "One or more of the t")
            results = self._format_results(run.candidates, self.n_splits_, out, more)
        self.multimetric_ = isinstance(out[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(out[0]["test_scores"])
            metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        self.sharing_ = run.sharing
        self.cv_results_ = results

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        began = clock.now()
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        self.best_estimator_ = best.fit(X, y, **fit_params)
        self.refit_time_ = clock.now() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _weight_name(estimator: Any) -> str:
    """Return the name by which the machine's weights are passed to ``fit``."""
    name = steps_of(estimator)[-1][0]
    return f"{name}__sample_weight" if name else "sample_weight"


def _number_rows(number: int, drawn: tuple[Any, Any], n: int) -> Split:
    """Return a split by the numbers of its rows, which may be given as masks."""
    for rows in map(np.asarray, drawn):
        numbers = rows.dtype.kind in "iu" and ((rows >= -n) & (rows < n)).all()
        if rows.dtype != bool and not numbers:
            raise ValueError(
                f"cv is not valid: it must give numbers of rows, from 0 to {n - 1}, but a split "
                f"gives {rows!r:.80}."
            )
    return Split(number, *(np.arange(n)[rows] for rows in drawn))


# ------------------------------------------------------------------- one search


class Scoring(NamedTuple):
    """How models are scored."""

    scorers: Any
    metrics: dict[str, Metric] | Metric | None  # what the scorers compute, if it is known
    params: dict[str, Any]
    error_score: Any
    train_scores: bool

    def result(self, model: Any, fold: Fold, seconds: float, gap: float) -> dict[str, Any]:
        """Return what ``cv_results_`` is made of, for one model."""
        began = clock.now()
        result: dict[str, Any] = {"fit_time": seconds, "relative_gap": gap, "abandoned": False}
        result["test_scores"] = self._score(model, fold.X_test, fold.y_test, fold.split.test)
        result["score_time"] = clock.now() - began
        if self.train_scores:
            result["train_scores"] = self._score(model, *fold.learnt, fold.split.train)
        return result

    def _score(self, model: Any, X: Any, y: Any, rows: Ints) -> Any:
        if isinstance(model, LazyModel) and self.metrics is not None and not self.params:
            found = _measure(self.metrics, np.asarray(y), model.predict(X))
            if found is not None:
                return found
        params = {name: _safe_indexing(values, rows) for name, values in self.params.items()}
        return _score(model, X, y, self.scorers, params, self.error_score)


def _measure(metrics: Any, y: Any, predicted: Any) -> Any:
    """Return what metrics say of predictions, or None if one of them does not know."""
    if not isinstance(metrics, dict):
        return metrics(y, predicted)
    found = {name: metric(y, predicted) for name, metric in metrics.items()}
    return None if None in found.values() else found


_ABANDONED = {
    "fit_time": 0.0, "score_time": 0.0, "relative_gap": np.nan, "abandoned": True,
    "test_scores": np.nan, "train_scores": np.nan,
}  # fmt: skip


_WIDE = 0.01  # relative gap of fits on a matrix whose candidates may be out
_ENOUGH_ROWS = 500  # to learn from, for such gaps to save anything


class Starts:
    """Duals of fits that may be refined: of as many of them as fit into the memory, the latest."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._kept: dict[tuple[int, int], list[tuple[Ints, Floats]]] = {}

    def keep(self, candidate: int, split: int, solved: SolvedJob, cost: int) -> None:
        """Keep the duals of a fit, without zeros."""
        duals = []
        for plane in solved.duals:
            used = np.flatnonzero(plane[cost])
            duals.append((used, plane[cost][used]))
        size = 16 * sum(len(used) for used, _ in duals)
        if size <= self._memory:
            self._memory -= size
            self._kept[candidate, split] = duals

    def get(self, job: Job) -> list[Floats] | None:
        """Return duals for each cost of a job, by plane, and forget them; None: there are none."""
        found = [
            self._kept.pop((c, job.split.number), None) for c in job.family.candidates.tolist()
        ]
        if None in found:
            return None
        out = []
        for k, problem in enumerate(job.formulated.problems):
            duals = np.zeros((len(found), len(problem.row)))
            for kept, row in zip(found, duals, strict=True):
                assert kept is not None
                used, values = kept[k]
                row[used] = values
                self._memory += 16 * len(used)
            out.append(duals)
        return out


class Racing:
    """Which candidates can still win: their mean score, if the rest of it were the best possible.

    Only a candidate that was scored in all splits eliminates others.
    """

    def __init__(self, n_splits: int, best_score: float | None) -> None:
        self.active = best_score is not None
        self._n_splits, self._best_score = n_splits, best_score
        self._scores: dict[int, list[float]] = {}
        self._leading = -np.inf

    def enter(self, candidate: int, score: float) -> None:
        """Note the score of a candidate in one more split."""
        scores = self._scores.setdefault(candidate, [])
        scores.append(float(score))
        if len(scores) == self._n_splits and np.isfinite(scores).all():
            self._leading = max(self._leading, float(np.mean(scores)))

    def is_lost(self, candidate: int) -> bool:
        """Return whether a candidate cannot win any more."""
        if self._best_score is None:
            return False
        scores = self._scores.get(candidate, [])
        rest = self._best_score * (self._n_splits - len(scores))
        leading = self._leading - 1e-12 * max(1.0, abs(self._leading))
        return (sum(scores) + rest) / self._n_splits < leading


@dataclass(eq=False)
class SearchRun:
    """The candidates of a search in all its splits."""

    candidates: list[dict[str, Any]]
    models: list[Any]  # the same as unfitted estimators
    folds: list[Fold]
    scoring: Scoring
    racing: Racing
    memory: int  # bytes for kernel values
    verbose: int
    bar: Bar
    deciding: Callable[[Any], float] | None = None  # reads the score by which candidates win
    results: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    matrices: int = 0
    chains: int = 0
    why_chains: str = ""
    shared: list[tuple[SharedGram, Kernel, list[Job]]] = field(default_factory=list)
    starts: Starts = field(init=False)
    refining: bool = field(init=False)
    refined: int = 0

    def __post_init__(self) -> None:
        few = max(len(fold.split.train) for fold in self.folds) < _ENOUGH_ROWS
        self.refining = self.deciding is not None and not few
        self.starts = Starts(self.memory // 8)

    def run(self, X: Any, y: Any, weight: Any, n_jobs: int | None) -> None:
        """Score every candidate in every split."""
        if self.verbose > 0:
            n, m = len(self.candidates), len(self.folds)
            sys.stdout.write(f"{n} candidates in {m} splits: {n * m} fits\n")
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        threads = int(effective_n_jobs(n_jobs))
        splits, train_scores = [fold.split for fold in self.folds], self.scoring.train_scores
        with ThreadPoolExecutor(threads) as pool, one_blas_thread():
            for stage in group(self.models):
                for view in views(stage.steps, X, y, weight, splits, train_scores):
                    self._evaluate(view, stage.families, pool, threads)
            self._refine(pool)

    def _evaluate(self, view: View, families: list[Family], pool: Executor, threads: int) -> None:
        """Score families on one matrix of kernel values if they can share it, else in chains."""
        shared = [family for family in families if suits_matrix(family.machine)]
        why = view.objection or find_shortage(len(view.y), self.memory, threads)
        if shared and why:
            self.why_chains, shared = why, []
        if shared:
            self._evaluate_on_matrix(view, shared, pool, threads)
        for family in families:
            if family not in shared:
                self._evaluate_in_chains(view, family, pool)

    def _evaluate_on_matrix(
        self, view: View, families: list[Family], pool: Executor, threads: int
    ) -> None:
        gram = SharedGram(view, is_classifier(families[0].machine), threads, self.memory)
        for kernel, jobs in state_jobs(view, families):
            self.matrices += 1
            for some in self._rounds(jobs):
                self._solve(gram, kernel, some, pool, _WIDE if self.refining else 0.0)
            if self.refining:
                self.shared.append((gram, kernel, jobs))
        gram.forget()

    def _solve(
        self, gram: SharedGram, kernel: Kernel, jobs: list[Job], pool: Executor, wide: float
    ) -> None:
        """Solve jobs to a wide gap, or to ``tol`` if that is wider, and score them."""
        train_scores = self.scoring.train_scores
        starts = [self.starts.get(job) for job in jobs]
        for solved in gram.solve(kernel, jobs, pool, train_scores, wide, starts):
            job, fold = solved.job, self.folds[solved.job.split.number]
            for place, candidate in enumerate(job.family.candidates.tolist()):
                model: Any = LazyModel(self.models[candidate], solved, place, fold)
                gap = float(solved.gaps[place])
                if gap > max(wide, job.machine.tol):  # the estimator has more ways to get there
                    model = model.fitted
                    gap = _largest_gap(steps_of(model)[-1][1].certificate_)
                result = self.scoring.result(model, fold, float(solved.seconds[place]), gap)
                self._enter(candidate, fold.split, result)
                if wide > 0.0:
                    self.starts.keep(candidate, job.split.number, solved, place)

    def _refine(self, pool: Executor) -> None:
        """Solve what may still win to ``tol``, until the winner is settled."""
        if not self.shared:
            return
        count = len(self.models)
        final = np.ones(count, bool)
        for *_, jobs in self.shared:
            for job in jobs:
                final[job.family.candidates] = job.machine.tol >= _WIDE
        scored = sum(len(fold.split.test) for fold in self.folds)
        scores = np.array([self._mean_score(candidate) for candidate in range(count)])
        standings = Standings(scores, final, 1.0 / max(1, scored))
        while len(chosen := standings.contenders()):
            self.bar.update(
                total=(self.bar.total or 0) + len(chosen) * len(self.folds),
                note=f"{len(chosen)} candidates that may win",
            )
            self._solve_to_tol(chosen, pool)
            for candidate in chosen.tolist():
                standings.enter(candidate, self._mean_score(candidate))
        self.refined = int(np.count_nonzero(standings.final))

    def _solve_to_tol(self, chosen: Ints, pool: Executor) -> None:
        for place, (gram, kernel, jobs) in enumerate(self.shared):
            there = [np.flatnonzero(np.isin(job.family.candidates, chosen)) for job in jobs]
            some = [job.take(places.tolist()) for job, places in zip(jobs, there, strict=True)]
            some = [job for job in some if len(job.family.costs)]
            if some:
                self._solve(gram, kernel, some, pool, 0.0)
            if place + 1 == len(self.shared) or self.shared[place + 1][0] is not gram:
                gram.forget()

    def _mean_score(self, candidate: int) -> float:
        assert self.deciding is not None
        results = [self.results[candidate, k]["test_scores"] for k in range(len(self.folds))]
        return float(np.mean([self.deciding(scores) for scores in results]))

    def _rounds(self, jobs: list[Job]) -> Iterator[list[Job]]:
        """Yield the jobs all at once, or split by split those not yet eliminated."""
        if not self.racing.active:
            yield jobs
            return
        for fold in self.folds:
            here = [job for job in jobs if job.split.number == fold.split.number]
            some = [job.take(self._drop_lost(job.family, job.split)) for job in here]
            some = [job for job in some if len(job.family.costs)]
            if some:
                yield some

    def _drop_lost(self, family: Family, split: Split) -> list[int]:
        """Return the places in a family of candidates that can win; abandon the others."""
        places = []
        for place, candidate in enumerate(family.candidates.tolist()):
            if self.racing.is_lost(candidate):
                self._enter(candidate, split, _ABANDONED)
            else:
                places.append(place)
        return places

    def _evaluate_in_chains(self, view: View, family: Family, pool: Executor) -> None:
        """Fit by rising C in each split, each time starting from the last solution."""
        self.chains += len(view.splits)
        for splits in [[split] for split in view.splits] if self.racing.active else [view.splits]:
            places = [self._drop_lost(family, split) for split in splits]
            with warnings.catch_warnings():  # here, as threads have their filters in common
                warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are in the results
                chains = pool.map(self._follow_chain, [view] * len(splits), [family] * len(splits),
                                  splits, places)  # fmt: skip
                found = list(chains)
            for split, chain in zip(splits, found, strict=True):
                for candidate, result in chain:
                    self._enter(candidate, split, result)

    def _follow_chain(
        self, view: View, family: Family, split: Split, places: list[int]
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return the results of a family in one split, by candidate."""
        X, y, weight = view.take(split.train)
        machine = clone(family.machine)
        # Only where the optimum is unique may the start be anywhere.
        convex = not hasattr(machine, "kernel") or named_kernel(machine).psd is True
        machine.set_params(warm_start=convex)
        name, model = steps_of(self.models[0])[-1][0], machine
        if name:
            before = [] if view.steps is None else view.steps.steps
            model = Pipeline([*before, (name, machine)])
        found = []
        for place in places:
            machine.set_params(C=float(family.costs[place]))
            began = clock.now()
            machine.fit(X, y, sample_weight=weight)
            seconds, gap = clock.now() - began, _largest_gap(machine.certificate_)
            result = self.scoring.result(model, self.folds[split.number], seconds, gap)
            found.append((int(family.candidates[place]), result))
        return found

    def _enter(self, candidate: int, split: Split, result: dict[str, Any]) -> None:
        self.bar.advance()
        before = self.results.get((candidate, split.number))
        if before is not None:  # it was refined
            for name in ("fit_time", "score_time"):
                result[name] += before[name]
        self.results[candidate, split.number] = result
        if result["abandoned"]:
            return
        if self.racing.active:
            self.racing.enter(candidate, result["test_scores"])
        if self.verbose > 1:
            settings = ", ".join(f"{k}={v}" for k, v in self.candidates[candidate].items())
            sys.stdout.write(
                f"[split {split.number + 1}/{len(self.folds)}] {settings}: "
                f"score={result['test_scores']}, gap {result['relative_gap']:.1e}, "
                f"{result['fit_time']:.2f} s\n"
            )

    @property
    def sharing(self) -> str:
        """A sentence on what was shared."""
        parts = []
        if self.matrices:
            noun = "matrix" if self.matrices == 1 else "matrices"
            parts.append(
                f"{self.matrices} kernel {noun} served {len(self.folds)} splits and all costs"
            )
        if self.chains:
            why = f" ({self.why_chains})" if self.why_chains else ""
            parts.append(f"{self.chains} chains of fits by rising C, each from the last{why}")
        if self.shared:
            parts.append(
                f"{self.refined} of {len(self.models)} candidates were solved to tol, the others "
                f"to relative gaps of at most {_WIDE}"
            )
        return "; ".join(parts)


def _largest_gap(certificate: Certificate) -> float:
    """Return the largest relative gap of the problems that a model is made of."""
    return float(max(part.relative_gap for part in certificate.parts or (certificate,)))
