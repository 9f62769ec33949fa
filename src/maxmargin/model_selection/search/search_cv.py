"""Grid search that does once what its fits have in common."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import sklearn
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import indexable

from maxmargin.errors import DistributedFitError, warn
from maxmargin.model_selection.search.evaluation import Scoring, SearchFits, quietly
from maxmargin.model_selection.search.metrics import find_metrics
from maxmargin.model_selection.search.on_cluster import ClusterRun, ask_for_memory, fit_each
from maxmargin.model_selection.search.plan import Split, find_obstacle, steps_of
from maxmargin.model_selection.search.run import SearchRun
from maxmargin.problems.gram import free_memory
from maxmargin.rows.cluster import cluster_of
from maxmargin.runtime import clock
from maxmargin.runtime.progress import progress
from maxmargin.validation.parameters import check_choice, check_number
from maxmargin.validation.sklearn_private import (
    count_rows,
    insert_error_scores,
    report_failures,
    scorers_of,
)

_SCORER = type(make_scorer(accuracy_score))  # the class of scikit-learn's own scorers


class _Setup(NamedTuple):
    """What a search of any kind begins with."""

    X: Any
    y: Any
    candidates: list[dict[str, Any]]
    scorers: Any
    metric: Any  # the name of the score by which a candidate wins
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    drawn: list[tuple[Any, Any]]  # the splits


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
        As in GridSearchCV. A function gets the models themselves, each fitted by itself in order
        of rising C; so for a metric of your own, ``sklearn.metrics.make_scorer`` is faster.
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
    memory : int or "auto", default="auto"
        Bytes that a kernel matrix, and copies of parts of it, may take; "auto": half of the free
        memory.
    refine : "contenders" or "all", default="contenders"
        Which fits on a kernel matrix are solved to ``tol``. "all": every one, so that all scores
        are those of GridSearchCV. "contenders": all are solved to a relative gap of 0.01 first, and
        those that may win are refined to ``tol``, from where they stand. The best
        score and its candidate, and those of all candidates that may win, are then as precise as
        with "all"; the scores of others are those of fits with the gaps that the results tell. See
        the notes on when a candidate is out. Fits to few rows, with a callable ``refit``, or with
        several scorings and no ``refit``, are all solved to ``tol``.
    client : distributed.Client or str, default=None
        A Dask cluster, or the address of its scheduler, whose workers do the fits: one task for
        each kernel setting, in one split or in all. The results are those of a search without it,
        to the last bit if machines are of one kind; a worker that is lost costs its tasks' time.
        ``n_jobs`` and ``memory`` are then those of a task ("auto": half of what the smallest worker
        has for each of its threads). The best candidate is fitted to all rows in this process.
        Rows travel with the tasks, up to 512 MB; of arrays from ``np.load(path, mmap_mode="r")``
        only the path does. Other estimators are fitted as tasks too, one for each split. None:
        this process. A client is shared by clones of the search; it is not pickled.

    Attributes
    ----------
    cv_results_ : dict
        As in GridSearchCV; where work was shared also ``max_relative_gap`` over the splits, which
        is at most ``tol`` where a candidate was solved to that. Times of fits that share work are
        their share of it.
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
        memory: int | str = "auto",
        refine: str = "contenders",
        client: Any = None,
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
        self.memory = memory
        self.refine = refine
        self.client = client

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; a client is a connection, which copies share."""
        params = {name: clone(value, safe=False) for name, value in self._given_params().items()}
        copied = type(self)(**params, client=self.client)
        for name in ("_metadata_request", "_skl_callbacks"):
            if name in vars(self):
                setattr(copied, name, copy.deepcopy(vars(self)[name]))
        return copied

    def __getstate__(self) -> Any:
        """Return what is pickled: a connection to a cluster is not, its address is."""
        state = super().__getstate__()
        if not isinstance(state.get("client"), str):
            state = {**state, "client": None}
        return state

    def _given_params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.get_params(deep=False)
        del params["client"]
        return params

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
        check_choice(self, "refine", ("contenders", "all"))
        with cluster_of(self.client) as client:
            return self._search(client, X, y, params)

    def _search(self, client: Any, X: Any, y: Any, params: dict[str, Any]) -> Self:
        memory = self._memory_limit(client)
        candidates = list(ParameterGrid(self.param_grid))
        models = [clone(self.estimator).set_params(**clone(c, safe=False)) for c in candidates]
        obstacle = self._find_obstacle(y, params, models)
        if obstacle:
            return self._search_plainly(client, X, y, params, obstacle)
        setup = self._set_up(X, y, params)
        if not setup.drawn:
            return self._search_plainly(client, X, y, params, "there are no splits")
        fits = self._shared_fits(setup, models, memory)
        with progress("Searching", unit="fit", quiet=self.verbose > 1) as bar:
            bar.update(total=len(models) * len(setup.drawn) + bool(self.refit))
            given = {"deciding": self._deciding_score(), "bar": bar, "verbose": self.verbose}
            kind = SearchRun if client is None else partial(ClusterRun, client)
            run = kind(fits, candidates, **given)
            try:
                with quietly():  # here, as threads have their filters in common
                    run.run()
            except DistributedFitError:
                raise
            except Exception as failure:  # whatever a step of a pipeline may raise
                if self.error_score == "raise":
                    raise
                bar.forget()
                return self._search_after_failure(client, setup, params, failure)
            self.sharing_ = run.sharing
            results = (run.results[c, s] for c in range(len(models)) for s in range(self.n_splits_))
            self._conclude(setup, list(results))
            if self.refit:
                bar.update(note="the best on all rows")
                self._refit(setup)
        return self

    def _set_up(self, X: Any, y: Any, params: dict[str, Any]) -> _Setup:
        scorers, metric = self._get_scorers()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(params)
        drawn = self._draw_splits(X, y, routed.splitter.split)
        fit_params = {k: v for k, v in routed.estimator.fit.items() if v is not None}
        candidates = list(ParameterGrid(self.param_grid))
        return _Setup(X, y, candidates, scorers, metric, fit_params, routed.scorer.score, drawn)

    def _shared_fits(self, setup: _Setup, models: list[Any], memory: int) -> SearchFits:
        weight = setup.fit_params.get(_weight_name(self.estimator))
        scoring = Scoring(
            setup.scorers,
            find_metrics(self.scoring, is_classifier(self.estimator)),
            _is_function(self.scoring),
            setup.score_params,
            self.error_score,
            bool(self.return_train_score),
        )
        return SearchFits(
            setup.X,
            setup.y,
            None if weight is None else np.asarray(weight, dtype=np.float64),
            setup.fit_params,
            [_number_rows(k, rows, count_rows(setup.y)) for k, rows in enumerate(setup.drawn)],
            models,
            scoring,
            memory,
            int(effective_n_jobs(self.n_jobs)),
        )

    def _deciding_score(self) -> Callable[[Any], float] | None:
        """Return what reads the score by which candidates win; None: all are solved to tol."""
        name, several = self.refit, isinstance(self.scoring, list | tuple | set | dict)
        if self.refine == "all" or callable(name) or (several and not isinstance(name, str)):
            return None

        def read(scores: Any) -> float:
            found = scores.get(name, np.nan) if isinstance(scores, dict) else scores
            return float(found)

        return read

    def _memory_limit(self, client: Any) -> int:
        if isinstance(self.memory, str) and self.memory == "auto":
            asked = None if client is None else ask_for_memory(client)
            return free_memory() if asked is None else asked
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
        if weight is not None and np.shape(weight) != (count_rows(y),):
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

    def _search_plainly(
        self, client: Any, X: Any, y: Any, params: dict[str, Any], why: str
    ) -> Self:
        """Search as GridSearchCV does."""
        with progress("Searching", unit="fit", quiet=self.verbose > 1):
            if client is None:
                self.sharing_ = f"nothing: {why}"
                super().fit(X, y, **params)
            else:
                self.sharing_ = f"nothing but a cluster: {why}"
                self._fit_each_on(client, X, y, params)
        return self

    def _fit_each_on(self, client: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        """Fit every candidate in every split as a task of its own."""
        callbacks = any(vars(each).get("_skl_callbacks") for each in (self, self.estimator))
        if callbacks or sklearn.get_config().get("enable_metadata_routing"):
            raise ValueError(
                "A search on a cluster takes neither scikit-learn's callbacks nor its metadata "
                "routing: turn them off, or use client=None."
            )
        setup = self._set_up(X, y, params)
        tasks = [(candidate, *rows) for candidate in setup.candidates for rows in setup.drawn]
        if not tasks:
            raise ValueError(f"cv={self.cv!r} and param_grid leave nothing to fit.")
        options = {
            "scorer": setup.scorers, "verbose": 0, "fit_params": setup.fit_params,
            "score_params": setup.score_params, "return_train_score": self.return_train_score,
            "return_n_test_samples": True, "return_times": True, "error_score": self.error_score,
        }  # fmt: skip
        out = fit_each(client, self.estimator, (setup.X, setup.y), tasks, options)
        report_failures(out, self.error_score)
        if callable(self.scoring):
            insert_error_scores(out, self.error_score)
        self._conclude(setup, out)
        if self.refit:
            self._refit(setup)

    def _search_after_failure(
        self, client: Any, setup: _Setup, params: dict[str, Any], failure: Exception
    ) -> Self:
        """Search as GridSearchCV does, in the splits already drawn: some can be drawn only once."""
        why, given = f"a fit failed ({failure})", self.cv
        try:
            self.cv = setup.drawn
            self._search_plainly(client, setup.X, setup.y, params, why)
        finally:
            self.cv = given
        means = [v for k, v in self.cv_results_.items() if k.startswith("mean_test_")]
        if np.isfinite(means).all():
            # GridSearchCV fitted everything: it was not the estimator that failed.
            warn(f"The search shared no work: {why}.", RuntimeWarning)
        return self

    def _conclude(self, setup: _Setup, out: list[dict[str, Any]]) -> None:
        """Set the results, given candidate by candidate and split by split; choose the best."""
        more: dict[str, list[Any]] = {}
        if "relative_gap" in out[0]:
            gaps = np.reshape([each.pop("relative_gap") for each in out], (-1, self.n_splits_))
            more["max_relative_gap"] = gaps.max(axis=1).tolist()
        results = self._format_results(setup.candidates, self.n_splits_, out, more)
        self._choose_best(results, out[0]["test_scores"], setup.metric)
        self.scorer_ = scorers_of(setup.scorers)

    def _choose_best(self, results: dict[str, Any], first_scores: Any, metric: Any) -> None:
        """Keep the results, and set the attributes of the best candidate."""
        self.multimetric_ = isinstance(first_scores, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first_scores)
            metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        self.cv_results_ = results

    def _refit(self, setup: _Setup) -> None:
        began = clock.now()
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        rows = (setup.X,) if setup.y is None else (setup.X, setup.y)
        self.best_estimator_ = best.fit(*rows, **setup.fit_params)
        self.refit_time_ = clock.now() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _is_function(scoring: Any) -> bool:
    """Return whether a scoring is no metric but asks models for whatever it likes."""
    each = scoring.values() if isinstance(scoring, dict) else [scoring]
    return any(callable(one) and not isinstance(one, _SCORER) for one in each)


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
