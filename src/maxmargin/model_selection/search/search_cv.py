"""Grid search that does once what its fits have in common."""

import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import sklearn
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.validation import _check_method_params, _num_samples

from maxmargin import clock
from maxmargin.certificates import Certificate
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.model_selection.search.lazy_model import Cell, Judge, Rows
from maxmargin.model_selection.search.plan import (
    Family,
    NotSharedError,
    Split,
    View,
    last_step,
    stages,
    steps_of,
    views,
    weight_name,
)
from maxmargin.model_selection.search.shared_gram import SharedMatrix, Solved, jobs_of, takes
from maxmargin.problems.gram import free_memory
from maxmargin.progress import Bar, progress
from maxmargin.threads import one_blas_thread

# ------------------------------------------------------------------- chains
#
# Where no matrix is shared: fits one after the other by rising C, each from the last.


def chain(view: View, family: Family, split: Split, wanted: list[int]
          ) -> Iterator[tuple[int, Any, float, float]]:  # fmt: skip
    """Yield, by rising C, the place of a candidate in its family, its model, seconds and gap."""
    X, y, weight = view.taken(split.train)
    machine = clone(family.machine).set_params(warm_start=_convex(family.machine))
    for k in wanted:
        machine.set_params(C=float(family.costs[k]))
        begun = clock.now()
        machine.fit(X, y, sample_weight=weight)
        yield k, machine, clock.now() - begun, largest_gap(machine.certificate_)


def _convex(machine: Any) -> bool:
    """Return whether the solution is the same from wherever one starts."""
    return not hasattr(machine, "kernel") or named_kernel(machine).psd is True


def largest_gap(certificate: Certificate) -> float:
    """Return the largest relative gap of the problems that a model is made of."""
    return float(max(part.relative_gap for part in certificate.parts or (certificate,)))


def whole(before: Any, name: str, machine: Any) -> Any:
    """Return a machine with the fitted steps that come before it."""
    if not name:
        return machine
    return Pipeline([*([] if before is None else before.steps), (name, machine)])


# ------------------------------------------------------------------- one search


Result = dict[str, Any]


class Means(NamedTuple):
    """What a search may use."""

    threads: int
    memory: int
    pool: Executor


class Race:
    """Which candidates can still win: their mean score, if the rest of it were the best possible.

    Only a candidate that is judged in all splits puts others out of the race.
    """

    def __init__(self, n_splits: int, limit: float | None) -> None:
        self._n_splits, self._limit = n_splits, limit
        self._scores: dict[int, list[float]] = {}
        self._best = -np.inf

    @property
    def on(self) -> bool:
        """Whether candidates are given up at all."""
        return self._limit is not None

    def enter(self, candidate: int, score: Any) -> None:
        """Note a score."""
        if self._limit is None:
            return
        scores = self._scores.setdefault(candidate, [])
        scores.append(float(score))
        if len(scores) == self._n_splits and np.isfinite(scores).all():
            self._best = max(self._best, float(np.mean(scores)))

    def lost(self, candidate: int) -> bool:
        """Return whether a candidate cannot win any more."""
        if self._limit is None:
            return False
        scores = self._scores.get(candidate, [])
        rest = self._limit * (self._n_splits - len(scores))
        best = self._best - 1e-12 * max(1.0, abs(self._best))
        return (sum(scores) + rest) / self._n_splits < best


class SearchRun:
    """The candidates of a search in all its splits."""

    def __init__(
        self,
        estimator: Any,
        candidates: list[dict[str, Any]],
        splits: list[Split],
        judge: Judge,
        race: Race,
        tell: Callable[[int, int, Result], None],
        bar: Bar,
    ) -> None:
        self._estimator, self._candidates, self._splits = estimator, candidates, splits
        self._judge, self._race, self._tell, self._bar = judge, race, tell, bar
        self.results: dict[tuple[int, int], Result] = {}
        self.matrices = self.chains = 0
        self.why_chains = ""

    def run(self, X: Any, y: Any, fit_params: dict[str, Any], means: Means) -> None:
        """Judge every candidate in every split."""
        weight = fit_params.get(weight_name(self._estimator))
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        self._rows = {split.number: Rows(X, y, split, fit_params) for split in self._splits}
        train_scores = self._judge.train_scores
        for stage in stages(self._estimator, self._candidates):
            for view, before in views(stage, X, y, weight, self._splits, train_scores):
                shared = [family for family in stage.families if takes(family.machine)]
                others = [family for family in stage.families if not takes(family.machine)]
                try:
                    self._by_matrix(view, shared, means)
                except NotSharedError as why:
                    self.why_chains, others = str(why), stage.families
                self._by_chains(view, others, before, means)

    # ------------------------------------------------------------ one matrix for all

    def _by_matrix(self, view: View, families: list[Family], means: Means) -> None:
        if not families:
            return
        labels = None
        if hasattr(families[0].machine, "class_weight"):
            labels = np.unique(view.y, return_inverse=True)[1]
        matrix = SharedMatrix(view, labels, means.memory, means.threads)
        for kernel, jobs in jobs_of(view, families):
            self.matrices += 1
            for some in self._rounds(jobs):
                train_scores = self._judge.train_scores
                for solved in matrix.solved(kernel, some, means.pool, train_scores):
                    self._judge_all(solved)

    def _rounds(self, jobs: list[Any]) -> Iterator[list[Any]]:
        """Yield the jobs all at once, or split by split with what is still in the race."""
        if not self._race.on:
            yield jobs
            return
        for split in self._splits:
            here = [job for job in jobs if job.split.number == split.number]
            some = [job.limited_to(self._running(job.family, split)) for job in here]
            some = [job for job in some if len(job.family.costs)]
            if some:
                yield some

    def _running(self, family: Family, split: Split) -> list[int]:
        """Return the places in a family of candidates that can win; give up the others."""
        places = []
        for place, candidate in enumerate(family.candidates):
            if self._race.lost(candidate):
                self._bar.advance()
                self._enter(candidate, split, self._judge.abandoned())
            else:
                places.append(place)
        return places

    def _judge_all(self, solved: Solved) -> None:
        rows = self._rows[solved.split.number]
        for place, candidate in enumerate(solved.family.candidates):
            model = self._model(candidate)
            gap, seconds = float(solved.gaps[place]), float(solved.seconds[place])
            cell: Any = Cell(model, solved, place, rows)
            if gap > solved.machine.tol:  # the estimator has more ways to get there
                cell = cell.fitted()
                gap = largest_gap(last_step(cell).certificate_)
            self._enter(candidate, solved.split, self._judged(cell, rows, seconds, gap))

    def _judged(self, model: Any, rows: Rows, seconds: float, gap: float) -> Result:
        result = self._judge.result(model, rows, seconds, gap)
        self._bar.advance()
        return result

    def _model(self, candidate: int) -> Any:
        params = clone(self._candidates[candidate], safe=False)
        return clone(self._estimator).set_params(**params)

    # ------------------------------------------------------------ one after the other

    def _by_chains(self, view: View, families: list[Family], before: Any, means: Means) -> None:
        self.chains += len(families) * len(view.splits)
        name = steps_of(self._estimator)[-1][0]

        def run(task: tuple[Family, Split, list[int]]) -> list[tuple[int, Result]]:
            family, split, places = task
            rows = self._rows[split.number]
            return [
                (
                    family.candidates[place],
                    self._judged(whole(before, name, machine), rows, seconds, gap),
                )
                for place, machine, seconds, gap in chain(view, family, split, places)
            ]

        for family in families:
            groups = [[split] for split in view.splits] if self._race.on else [view.splits]
            for splits in groups:
                tasks = [(family, split, self._running(family, split)) for split in splits]
                with warnings.catch_warnings():  # here, as threads have their filters in common
                    warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are in the results
                    answers = list(means.pool.map(run, tasks))
                for (_, split, _), found in zip(tasks, answers, strict=True):
                    for candidate, result in found:
                        self._enter(candidate, split, result)

    def _enter(self, candidate: int, split: Split, result: Result) -> None:
        self.results[candidate, split.number] = result
        if not result["abandoned"]:
            self._race.enter(candidate, result["test_scores"])
            self._tell(candidate, split.number, result)

    @property
    def sharing(self) -> str:
        """A sentence on what was shared."""
        parts = []
        if self.matrices:
            folds = len(self._splits)
            noun = "matrix" if self.matrices == 1 else "matrices"
            parts.append(f"{self.matrices} kernel {noun} served {folds} splits and all costs")
        if self.chains:
            parts.append(f"{self.chains} chains of fits by rising C, each from the last")
            if self.why_chains:
                parts[-1] += f" ({self.why_chains})"
        return "; ".join(parts)


# ------------------------------------------------------------------- the estimator


_KEYS = ("fit_time", "score_time", "test_scores")
# The largest value of scorings that have one, by the end of their name.
_AT_MOST_ONE = ("accuracy", "f1", "precision", "recall", "jaccard", "roc_auc", "r2")


class SVCSearchCV(GridSearchCV):  # type: ignore[misc, unused-ignore]
    """Grid search with cross-validation, for support vector machines: the same answer, sooner.

    Constructor, methods and attributes are those of ``sklearn.model_selection.GridSearchCV``. For
    ``SVC`` and ``SVR`` with a positive semidefinite kernel, alone or at the end of a pipeline, the
    kernel matrix of each kernel setting is computed once and serves all splits and all C; each C
    starts from the solution of the one before, and splits from a common start. Every fit is solved
    to the estimator's ``tol``, a relative duality gap, which is in the results. ``LinearSVC``,
    ``LinearSVR``, linear kernels and matrices too large for the memory go by rising C, each from
    the last. Anything else is searched just as GridSearchCV does; ``sharing_`` says which it was.

    Parameters
    ----------
    estimator : estimator
        What to search for, such as ``SVC()`` or ``make_pipeline(StandardScaler(), SVC())``.
    param_grid : dict or list of dict
        Values to try by name of parameter.
    scoring : str, callable, list, tuple or dict, default=None
        As in GridSearchCV.
    n_jobs : int or None, default=None
        Threads; None: 1, -1: all processors.
    refit : bool, str or callable, default=True
        Whether, and by which score, the best candidate is fitted to all rows.
    cv : int, splitter or iterable, default=None
        The splits; None: 5, stratified for classes.
    verbose : int, default=0
        1: say what is begun; 2: a line for each fit.
    pre_dispatch : int or str, default="2*n_jobs"
        Taken for the sake of GridSearchCV's signature, and used where the search is its own.
    error_score : "raise" or number, default=nan
        Score of a fit that fails.
    return_train_score : bool, default=False
        Whether training rows are scored as well.
    abandon : bool, default=False
        Whether a candidate is given up once it cannot win any more, even if its scores in the
        remaining splits were the best possible. Its score is then NaN, and ``abandoned`` in the
        results is True. The winner is the same. Needs a single scoring with a largest value.
    memory : int or "auto", default="auto"
        Bytes that a kernel matrix, and copies of parts of it, may take; "auto": half of what is
        free.

    Attributes
    ----------
    cv_results_ : dict
        As in GridSearchCV; where work was shared also ``max_relative_gap`` over the splits, and
        with ``abandon=True`` whether a candidate was ``abandoned``. Times of fits that share work
        are their share of it.
    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_ :
        As in GridSearchCV. ``best_estimator_`` was fitted by itself and has its own certificate.
    multimetric_ : bool
        Whether there are several scorings.
    sharing_ : str
        What the fits had in common, or why nothing.

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

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Judge all candidates, and fit the best one.

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
        with progress("Searching", unit="fit", quiet=self.verbose > 1) as bar:
            return self._search(X, y, params, bar)

    def _search(self, X: Any, y: Any, params: dict[str, Any], bar: Bar) -> Self:
        scorers, metric = self._get_scorers()
        drawn: list[Any] = []
        try:
            run, fit_params = self._run(X, y, params, scorers, drawn, bar)
        except NotSharedError as found:
            why, failed = str(found), found.__cause__ is not None
        else:
            self._conclude(run, metric)
            if self.refit:
                bar.update(note="the best on all rows")
                self._refit(X, y, fit_params)
            self.scorer_ = getattr(scorers, "_scorers", scorers)
            return self
        bar.forget()
        self._search_plainly(X, y, params, drawn, why)
        if failed and all(np.isfinite(v).all() for k, v in self.cv_results_.items() if _is_mean(k)):
            # GridSearchCV fitted everything: it was not the estimator that failed.
            warnings.warn(f"The search shared no work: {why}.", RuntimeWarning, stacklevel=3)
        return self

    def _search_plainly(
        self, X: Any, y: Any, params: dict[str, Any], drawn: list[Any], why: str
    ) -> None:
        """Search as GridSearchCV does, in the splits already drawn: some can be drawn only once."""
        if self.abandon:
            raise ValueError(
                f"abandon=True is not possible for this search: {why}. Use abandon=False."
            )
        self.sharing_ = f"nothing: {why}"
        given: Any = self.cv
        try:
            self.cv = drawn or given
            super().fit(X, y, **params)
        finally:
            self.cv = given

    # ------------------------------------------------------------ what the parameters say

    def _limit(self) -> float | None:
        """Return the best score there can be, if candidates are to be given up."""
        if not isinstance(self.abandon, bool | np.bool_):
            raise TypeError(f"abandon={self.abandon!r} is not valid: it must be True or False.")
        if not self.abandon:
            return None
        name = self.scoring
        if name is None:
            return 1.0
        if isinstance(name, str) and name.startswith("neg_"):
            return 0.0
        if isinstance(name, str) and name.startswith(("balanced_", *_AT_MOST_ONE)):
            return 1.0
        raise ValueError(
            f"abandon=True needs a scoring whose best value is known, not {name!r}: 'accuracy', "
            "'r2' or another that is at most 1, or one that begins with 'neg_'. Or use "
            "abandon=False."
        )

    def _memory(self) -> int:
        if isinstance(self.memory, str) and self.memory == "auto":
            return free_memory()
        if not isinstance(self.memory, Integral) or isinstance(self.memory, bool):
            raise TypeError(
                f"memory={self.memory!r} is not valid: it must be a number of bytes, or 'auto'."
            )
        if self.memory < 1:
            raise ValueError(f"memory={self.memory!r} is not valid: it must be ≥ 1, or 'auto'.")
        return int(self.memory)

    # ------------------------------------------------------------ judging

    def _run(
        self, X: Any, y: Any, params: dict[str, Any], scorers: Any, drawn: list[Any], bar: Bar
    ) -> tuple[SearchRun, dict[str, Any]]:
        """Return all candidates judged, and what ``fit`` is given besides X and y."""
        limit, memory = self._limit(), self._memory()
        self._refuse(y, params)
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params))
        fit_params = {k: v for k, v in routed.estimator.fit.items() if v is not None}
        if any(_num_samples(values) != _num_samples(y) for values in fit_params.values()):
            raise NotSharedError(f"{', '.join(fit_params)} and y differ in length")
        splits = self._splits(X, y, routed.splitter.split, drawn)
        candidates = list(ParameterGrid(self.param_grid))
        if self.verbose > 0:
            sys.stdout.write(
                f"{len(candidates)} candidates in {len(splits)} splits: "
                f"{len(candidates) * len(splits)} fits\n"
            )
        bar.update(total=len(candidates) * len(splits) + bool(self.refit))
        run = SearchRun(
            self.estimator,
            candidates,
            splits,
            Judge(scorers, routed.scorer.score, self.error_score, self.return_train_score),
            Race(len(splits), limit),
            self._teller(candidates),
            bar,
        )
        threads = int(effective_n_jobs(self.n_jobs))
        try:
            with ThreadPoolExecutor(threads) as pool, one_blas_thread():
                run.run(X, y, fit_params, Means(threads, memory, pool))
        except NotSharedError:
            raise
        except Exception as failed:  # whatever a step of a pipeline may raise
            if self.error_score == "raise":
                raise
            raise NotSharedError(f"a fit failed ({failed})") from failed
        return run, fit_params

    def _refuse(self, y: Any, params: dict[str, Any]) -> None:
        """Raise if it is known from the start that fits cannot share work."""
        if y is None:
            raise NotSharedError("there is no y")
        if getattr(y, "ndim", 1) != 1:
            raise NotSharedError("y has several columns, or is one")
        if sklearn.get_config().get("enable_metadata_routing"):
            raise NotSharedError("metadata routing is on")
        followed = [self, *(step for _, step in steps_of(self.estimator))]
        if any(getattr(one, "_skl_callbacks", None) for one in followed):
            raise NotSharedError("callbacks follow each fit by itself")
        others = set(params) - {"groups", weight_name(self.estimator)}
        if others:
            raise NotSharedError(f"fit is given {', '.join(sorted(others))}")

    def _splits(self, X: Any, y: Any, groups: dict[str, Any], drawn: list[Any]) -> list[Split]:
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = cv.get_n_splits(X, y, **groups)
        drawn += cv.split(X, y, **groups)
        if len(drawn) != self.n_splits_:
            raise ValueError(
                f"cv={self.cv!r} is not valid: get_n_splits says {self.n_splits_} splits, but "
                f"split gives {len(drawn)}."
            )
        if not drawn:
            raise NotSharedError("there are no splits")
        place = _places(_num_samples(y))
        return [Split(number, *map(place, rows)) for number, rows in enumerate(drawn)]

    def _teller(self, candidates: list[dict[str, Any]]) -> Any:
        def tell(candidate: int, split: int, result: dict[str, Any]) -> None:
            if self.verbose > 1:
                settings = ", ".join(f"{k}={v}" for k, v in candidates[candidate].items())
                sys.stdout.write(
                    f"[split {split + 1}/{self.n_splits_}] {settings}: "
                    f"score={result['test_scores']}, gap {result['relative_gap']:.1e}, "
                    f"{result['fit_time']:.2f} s\n"
                )

        return tell

    def _conclude(self, run: SearchRun, metric: Any) -> None:
        """Set the results, and choose the best candidate."""
        candidates = list(ParameterGrid(self.param_grid))
        grid = [[run.results[c, s] for s in range(self.n_splits_)] for c in range(len(candidates))]
        more: dict[str, list[Any]] = {
            "max_relative_gap": [max(one["relative_gap"] for one in row) for row in grid],
        }
        if self.abandon:
            more["abandoned"] = [any(one["abandoned"] for one in row) for row in grid]
        keys = (*_KEYS, "train_scores") if self.return_train_score else _KEYS
        out = [{key: one[key] for key in keys} for row in grid for one in row]
        with warnings.catch_warnings():
            if self.abandon:
                warnings.filterwarnings("ignore", "One or more of the t")
            results = self._format_results(candidates, self.n_splits_, out, more)
        self._choose(results, out[0]["test_scores"], metric)
        self.sharing_ = run.sharing
        self.cv_results_ = results

    def _choose(self, results: dict[str, Any], first: Any, metric: Any) -> None:
        self.multimetric_ = isinstance(first, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first)
            metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        begun = clock.now()
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        self.best_estimator_ = best.fit(X, y, **fit_params)
        self.refit_time_ = clock.now() - begun
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _is_mean(key: str) -> bool:
    return key.startswith("mean_test_")


def _places(n: int) -> Any:
    """Return what turns a mask or places into places."""

    def placed(rows: Any) -> Any:
        rows = np.asarray(rows)
        if rows.dtype == bool:
            return np.flatnonzero(rows)
        if rows.dtype.kind not in "iu" or ((rows < -n) | (rows >= n)).any():
            raise ValueError(
                f"cv is not valid: it must give numbers of rows, from 0 to {n - 1}, but a split "
                f"gives {rows!r:.80}."
            )
        return np.arange(n)[rows]

    return placed
