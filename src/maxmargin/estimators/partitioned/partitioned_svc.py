"""Exact kernel machines on the cells of a partition, for rows too many for one machine."""

import copy
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate, together
from maxmargin.certificates.certificate import unproved
from maxmargin.errors import warn
from maxmargin.estimators.kernel_input import count_threads, named_kernel
from maxmargin.estimators.linear.blocked import by_parts, check_names, nameless_rows
from maxmargin.estimators.machine import Solved
from maxmargin.estimators.partitioned.cell_machine import (
    CellCandidates,
    CellTask,
    train_batch,
    train_cell,
)
from maxmargin.estimators.partitioned.cells import (
    CellRows,
    TreeCells,
    gather_rows,
)
from maxmargin.estimators.reductions import ScoresOnly, best_classes
from maxmargin.estimators.svm.svc import SVC
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.problems.problem import Point, Status
from maxmargin.rows.row_source import RowSource
from maxmargin.runtime import clock
from maxmargin.runtime.progress import Bar, progress
from maxmargin.runtime.threads import one_blas_thread, share_work, usual_threads
from maxmargin.solve import gap_left
from maxmargin.validation.data import (
    check_classification,
    check_rows,
    class_indices,
    generator,
    refuse_overflow,
    stacked,
)
from maxmargin.validation.parameters import NamedParameters, check_number, check_threads

_NEIGHBOURS = 5  # other cells that a row may be near to
_ROWS_AT_A_TIME = 1 << 17  # in a prediction
_PER_FUTURE = 8  # cells that a worker of a cluster trains at a time
_FUTURES_AT_A_TIME = 64  # whose rows are on their way
_NOTHING = Certificate(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # rows of one class: b = ±1 costs nothing
# Statuses from the gravest on: what is said of a fit is what is said of its worst cell.
_GRAVEST = (
    *(Status.INTERRUPTED, Status.MAX_TIME, Status.MAX_ITER, Status.STALLED, Status.ROUNDING),
    *(Status.STATIONARY, Status.INEXACT),
)


class PartitionedSVC(ScoresOnly, NamedParameters, ClassifierMixin, BaseEstimator):
    """Support vector classifiers with any kernel on the cells of a partition, each with a proof.

    The space of rows is divided into cells of about ``size`` rows, by planes across the direction
    of their largest spread, again and again. Each cell has a machine of its own, exact and
    certified, trained on its rows and on some just outside of it; a row is classified by the
    machine of the cell that it falls into, and near a border by those on both sides. Time and
    memory grow with the number of rows, not with its square, so that millions of rows are feasible.
    It is another machine than ``SVC`` on all rows, which usually has fewer errors where it is
    feasible; with ``size`` rows or fewer there is one cell and it is that one.

    Parameters
    ----------
    size : int, default=2000
        Rows in a cell, ≥ 2: no more than this unless rows are equal. The larger, the fewer
        borders, and the longer the fit: about in proportion.
    overlap : float, default=0.5
        Each cell is also trained on this times as many rows as it has, ≥ 0: those outside that are
        nearest to it. If a row to be classified is as near to another cell, that cell's score
        counts too, less and less with the distance: so scores jump little at borders, and more
        rows are right. 0: hard borders.
    C : float or list of float, default=1.0
        Cost of slack, > 0. Of several, each cell chooses one by cross-validation.
    kernel : str, Kernel or callable, default="rbf"
        As in ``SVC``, but for kernels of given matrices and of objects that are not rows.
    degree : int, default=3
        For "poly", ≥ 0.
    gamma : float, "scale", "auto" or a list of them, default="scale"
        As in ``SVC``; "scale" is 1/(d·Var X) of the rows of a cell. Of several, each cell chooses
        one by cross-validation.
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    folds : int, default=3
        Folds of the cross-validation in each cell, ≥ 2, if C or gamma is a list. Settings are
        compared by the weight of the rows that are right; of equal ones the smallest C is taken.
    tol : float, default=1e-4
        Relative duality gap at which the machine of a cell is good enough, ≥ 0.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" by all rows, not by those of a cell.
    max_iter : int, default=10000
        Iterations allowed for each pair of classes in a cell; -1 stands for the default.
    max_time : float or None, default=None
        Seconds allowed for the fit. Cells that were not reached predict their most frequent class.
    verbose : int or bool, default=False
        Write a line per cell.
    random_state : int, Generator, RandomState or None, default=None
        For the folds. None is a fixed seed.
    n_jobs : int or None, default=None
        Threads; None or -1: as many as BLAS uses. The model does not depend on it.
    client : distributed.Client or None, default=None
        Where to train: cells are sent to the workers of this client (anything with ``submit`` and
        ``gather``). None: here. Copies of this estimator share it; pickles are without it.

    Attributes
    ----------
    classes_, class_weight_ : ndarray of shape (n_classes,)
        The labels, and the factors of C.
    cells_ : TreeCells
        The partition.
    n_cells_ : int
        The number of cells.
    cell_sizes_ : ndarray of shape (n_cells,)
        The training rows in each cell, without those of its neighbours.
    machines_ : list of SVC or None
        The machine of each cell, with the ``C`` and the ``kernel_`` it has chosen. None: the cell
        has rows of one class only (or was not reached in ``max_time``), and predicts that.
    certificates_ : list of Certificate
        Bounds on the optimum of each cell's problem, recomputed from its rows.
    certificate_ : Certificate
        Their sum. It proves how well the problems of the cells are solved. It says nothing about
        one machine on all rows, whose problem is another.
    status_, stop_reason_, n_iter_ :
        Why the fit stopped (an enum and a sentence), said of the worst cell; and the largest
        number of iterations.

    Notes
    -----
    Cells are found on rows as they are: scale columns before. Weights are repetitions in the
    problem of each cell, but a row counts once in the size of a cell, whatever its weight. The
    order of rows changes no cell, unless rows are exactly half-way; it changes machines by what
    ``tol`` allows.

    Rows are held in memory, those of a ``RowSource`` too (``mm.data.open``).

    The idea of cells with hyperparameters of their own is that of liquidSVM (Steinwart and Thomann,
    2017).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(3000, random_state=0)
    >>> model = mm.PartitionedSVC(size=500, C=10.0).fit(X, y)
    >>> model.n_cells_, model.score(X, y)
    (6, 1.0)
    >>> all(certificate.holds(1e-4) for certificate in model.certificates_)
    True
    """

    _instead: ClassVar = {"cells": "Cells are those of a tree of planes."}

    def __init__(
        self,
        *,
        size: int = 2000,
        overlap: float = 0.5,
        C: Any = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        folds: int = 3,
        tol: float = 1e-4,
        class_weight: Any = None,
        max_iter: int = 10_000,
        max_time: float | None = None,
        verbose: int | bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        client: Any = None,
    ) -> None:
        self.size = size
        self.overlap = overlap
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.folds = folds
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.client = client

    # ------------------------------------------------------------ what scikit-learn asks for

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def __sklearn_clone__(self) -> Self:
        alone = copy.copy(self)
        alone.client = None  # a connection cannot be copied
        fresh: Self = super(PartitionedSVC, alone).__sklearn_clone__()
        fresh.client = self.client
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    # ------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Divide the rows into cells, and train a machine in each.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or RowSource
            Rows; float32 stays float32, sparse stays sparse. The rows of a ``RowSource`` are read
            into memory.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes. Not for a ``RowSource``, which has its own.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row counts; a row of weight 0 is absent.

        Returns
        -------
        self
        """
        self.check_parameters()
        counting = clock.Clock(np.inf if self.max_time is None else float(self.max_time))
        self.__dict__.pop("status_", None)  # whatever fails from here on leaves it unfitted
        names = X.feature_names if isinstance(X, RowSource) else None
        if isinstance(X, RowSource):
            X, y, sample_weight = _read_source(X, y, sample_weight)
        training = self._training(X, y, sample_weight, reset=True)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        seed = 0 if self.random_state is None else int(generator(self.random_state).integers(2**31))
        threads = count_threads(self.n_jobs) or usual_threads()
        partition = TreeCells.find(training.X, int(self.size))
        near = partition.neighbours(training.X, self._neighbours(), threads)
        cells = gather_rows(near, partition.n_cells, float(self.overlap))
        del near
        self._keep_cells(partition, cells)
        candidates = CellCandidates(_several(self.C), _several(self.gamma), int(self.folds), seed)
        trained = self._train(training, cells, candidates, counting, threads)
        return self._adopt(trained)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        check_number(self, "size", at_least=2, integer=True)
        check_number(self, "overlap", at_least=0)
        check_number(self, "folds", at_least=2, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_threads(self)
        if not isinstance(self.verbose, Integral):
            raise TypeError(
                f"verbose={self.verbose!r} is not valid: it must be an integer or bool."
            )
        if self.random_state is not None:
            generator(self.random_state)
        if not (self.client is None or hasattr(self.client, "submit")):
            raise TypeError(
                f"client={self.client!r} is not valid: it must be a distributed.Client (connect "
                "with distributed.Client(address)), or None."
            )
        for name in ("C", "gamma"):
            if not _several(getattr(self, name)):
                raise ValueError(f"{name}=[] is not valid: name at least one value to choose from.")
        for cost in _several(self.C):
            for gamma in _several(self.gamma):
                self._machine().set_params(C=cost, gamma=gamma).check_parameters()
        kernel = named_kernel(self._machine().set_params(gamma=_several(self.gamma)[0]))
        if kernel.takes_gram or kernel.takes_objects:
            raise ValueError(
                f"kernel={self.kernel!r} is not supported by PartitionedSVC, whose cells are found "
                "on rows of numbers: use SVC, or a kernel of rows."
            )

    def _machine(self) -> SVC:
        """Return a machine with the parameters of all cells."""
        return SVC(
            kernel=self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )

    def _neighbours(self) -> int:
        return _NEIGHBOURS if self.overlap else 0

    def _training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> "_CellTraining":
        """Check the data, and leave out rows without weight."""
        X = check_rows(self, X, reset=reset)
        refuse_overflow(self, X, largest_squared_norm(X))
        labels, weight, factors = check_classification(
            self, y, X.shape[0], sample_weight, reset=reset
        )
        if reset:
            self.class_weight_ = factors
        kept = np.arange(X.shape[0])
        if not weight.all():
            kept = np.flatnonzero(weight)
            X, labels, weight = X[kept], labels[kept], weight[kept]
        given = None if sample_weight is None else weight
        return _CellTraining(X, labels, given, self.class_weight_, self.classes_, kept)

    # ------------------------------------------------------------ training

    def _train(
        self,
        training: "_CellTraining",
        cells: CellRows,
        candidates: CellCandidates,
        counting: clock.Clock,
        threads: int,
    ) -> "list[_Trained]":
        """Train all cells that can be, until the time is up or the keyboard interrupts."""
        trained = [_Trained(training.most_frequent(rows)) for rows in cells.rows]
        todo = [j for j, rows in enumerate(cells.rows) if training.mixed(rows)]
        for j in todo:
            trained[j].status = Status.MAX_TIME  # until it is its turn
        with (
            progress(
                "Training", len(todo), unit="cell", max_time=self.max_time, quiet=bool(self.verbose)
            ) as bar,
            _no_warnings(),
        ):
            run = _Run(self, training, cells, candidates, counting, trained, bar)
            try:
                if self.client is None:
                    run.in_threads(todo, threads)
                else:
                    run.on_cluster(todo)
            except KeyboardInterrupt:
                for each in trained:
                    if each.status is Status.MAX_TIME:
                        each.status = Status.INTERRUPTED
        return trained

    # ------------------------------------------------------------ adopt

    def _keep_cells(self, partition: TreeCells, cells: CellRows) -> None:
        self.cells_, self.n_cells_ = partition, partition.n_cells
        self.cell_sizes_, self._reach = cells.counts.astype(np.int64), cells.reach

    def _adopt(self, trained: "list[_Trained]") -> Self:
        self.machines_ = [each.machine for each in trained]
        self._sole = np.array([each.label for each in trained], dtype=np.int64)
        self._unreached = np.array([each.status is not None for each in trained])
        found = [m.status_ for m in self.machines_ if m is not None]
        found += [each.status for each in trained if each.status is not None]
        wrong = [status for status in found if status is not Status.OPTIMAL]
        wrong.sort(key=lambda status: _GRAVEST.index(status) if status in _GRAVEST else 99)
        self.status_ = wrong[0] if wrong else Status.OPTIMAL
        counts = [int(np.max(m.n_iter_)) for m in self.machines_ if m is not None]
        self.n_iter_ = max(counts, default=0)
        self.stop_reason_ = self._reason(len(wrong))
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if wrong:
            proved = self.status_ not in (Status.STATIONARY, Status.INEXACT)
            kind = ConvergenceWarning if proved else UserWarning
            warn(self.stop_reason_, kind)
        return self

    def _reason(self, wrong: int) -> str:
        n, machines = self.n_cells_, sum(m is not None for m in self.machines_)
        where = f"{n} cell{'' if n == 1 else 's'}, {machines} with a machine"
        if not wrong:
            return f"{where}: {self.status_.value} in every cell."
        reason = f"{where}, {wrong} not solved to tol: {self.status_.value}."
        unreached = int(self._unreached.sum())
        if unreached:
            each = "1 cell was" if unreached == 1 else f"{unreached} cells were"
            return f"{reason} {each} not reached and predict the most frequent class."
        return reason + gap_left(self.certificate_, self.tol)

    @property
    def certificates_(self) -> list[Certificate]:
        """Bounds on the optimum of each cell's problem."""
        check_is_fitted(self)
        return [
            (unproved(Point()) if lost else _NOTHING) if machine is None else machine.certificate_
            for machine, lost in zip(self.machines_, self._unreached, strict=True)
        ]

    @property
    def certificate_(self) -> Certificate:
        """Bounds on the sum of the cells' optima."""
        found = self.certificates_
        if len(found) == 1:
            return found[0]
        whole = together(found)
        what = (
            f"this is about the sum of the problems of {len(found)} cells, not about one machine "
            "on all rows"
        )
        return replace(whole, caveat=f"{whole.caveat}; {what}" if whole.caveat else what)

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems of all cells that were solved, and their machines as solutions."""
        check_is_fitted(self)
        if isinstance(X, RowSource):
            check_names(X, self)
            with nameless_rows():
                return self.solution(*_read_source(X, y, sample_weight))
        training = self._training(X, y, sample_weight, reset=False)
        near = self.cells_.neighbours(training.X, self._neighbours(), count_threads(self.n_jobs))
        cells = gather_rows(near, self.n_cells_, float(self.overlap))
        if not np.array_equal(cells.counts, self.cell_sizes_):
            raise ValueError(
                "These are not the rows that this PartitionedSVC was fitted to: its cells have "
                "other numbers of them. certify needs the training rows, all of them, and their "
                "weights."
            )
        found = []
        for rows, machine in zip(cells.rows, self.machines_, strict=True):
            if machine is not None:
                task = training.task(rows, machine)
                for problem, point, own in machine.solution(task.X, task.y, task.weight):
                    found.append(Solved(problem, point, training.kept[rows[own]]))
        if not found:
            raise ValueError("No cell has a machine, as each has rows of one class.")
        return found

    # ------------------------------------------------------------ prediction

    def cell_of(self, X: Any) -> Ints:
        """Return the number of the cell that each row falls into.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Places in ``machines_``, ``certificates_`` and ``cell_sizes_``.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return np.asarray(self.cells_.neighbours(X, 0, count_threads(self.n_jobs)).cells[:, 0])

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of rows: those of their cells' machines, blended near borders.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or RowSource
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes f, which is ±1 in a cell that has rows of one class only. For more, the
            number of pairs that each class wins, plus less than a half for the sum of its scores;
            a class without rows in a cell loses against all others.
        """
        check_is_fitted(self)
        if isinstance(X, RowSource):
            return np.asarray(by_parts(X, self.decision_function))
        X = check_rows(self, X, reset=False)
        columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        scores = np.empty((X.shape[0], columns))
        for first in range(0, X.shape[0], _ROWS_AT_A_TIME):
            some = slice(first, first + _ROWS_AT_A_TIME)
            scores[some] = self._scores(X[some], columns)
        return scores[:, 0] if columns == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or RowSource
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return best_classes(self.decision_function(X), self.classes_)

    def _scores(self, X: Any, columns: int) -> Floats:
        """Return the scores of some rows, as means over the cells that they are near to."""
        threads = count_threads(self.n_jobs) or usual_threads()
        near = self.cells_.neighbours(X, self._neighbours_kept(), threads)
        reach = np.append(self._reach, 0.0)[near.cells]  # that of −1 is 0
        shares = np.maximum(0.0, 1.0 - near.gaps / np.where(reach > 0, reach, 1.0)) * (reach > 0)
        shares[:, 0] = 1.0
        row, place = np.nonzero(shares)
        order = np.argsort(near.cells[row, place], kind="stable")
        row, place = row[order], place[order]
        cells, values = near.cells[row, place], np.empty((len(row), columns))
        numbers, begins = np.unique(cells, return_index=True)
        groups = deque(zip(numbers, begins, np.append(begins[1:], len(row)), strict=True))

        def score(group: tuple[int, int, int]) -> None:
            cell, begin, end = group
            values[begin:end] = self._cell_scores(int(cell), X[row[begin:end]], columns)

        safe = all(m is None or m.kernel_.thread_safe for m in self.machines_)
        many = len(groups) > 1
        with one_blas_thread() if many else nullcontext():
            share_work(score, groups, threads if many and safe else 1)
        shares = shares[row, place]
        total = np.bincount(row, shares, minlength=X.shape[0])
        sums = [np.bincount(row, shares * v, minlength=X.shape[0]) for v in values.T]
        return np.stack(sums, axis=1) / total[:, np.newaxis]

    def _neighbours_kept(self) -> int:
        return _NEIGHBOURS if self._reach.any() else 0

    def _cell_scores(self, cell: int, X: Any, columns: int) -> Floats:
        """Return the scores of rows by the machine of one cell, for all classes."""
        machine, sole = self.machines_[cell], int(self._sole[cell])
        if columns == 1:
            if machine is None:
                return np.full((X.shape[0], 1), 1.0 if sole == 1 else -1.0)
            return np.asarray(machine.decision_function(X)).reshape(-1, 1)
        scores = np.full((X.shape[0], columns), -0.5)  # votes of classes that the cell has not
        if machine is None:
            scores[:, sole] = columns - 1.0
            return scores
        own = np.asarray(machine.decision_function(X))
        if own.ndim == 1:  # as if it had been one pair of many
            less = own / (3 * (np.abs(own) + 1))
            own = np.stack([(own <= 0) - less, (own > 0) + less], axis=1)
        known = class_indices(self.classes_, machine.classes_)
        scores[:, known] = own + (columns - len(known))
        return scores


# ------------------------------------------------------------------- the parts of a fit


@dataclass(frozen=True)
class _CellTraining:
    """The rows that take part in a fit."""

    X: Any
    labels: Ints
    weight: Floats | None
    factors: Floats
    classes: npt.NDArray[Any]
    kept: Ints  # their numbers among the rows given

    def _totals(self, rows: Ints) -> Floats:
        """Return the weight of each class."""
        weight = None if self.weight is None else self.weight[rows]
        counts = np.bincount(self.labels[rows], weight, minlength=len(self.classes))
        return np.asarray(counts * self.factors)

    def mixed(self, rows: Ints) -> bool:
        """Return whether there are rows of several classes."""
        return int(np.count_nonzero(self._totals(rows))) > 1

    def most_frequent(self, rows: Ints) -> int:
        """Return the class with the most weight."""
        return int(np.argmax(self._totals(rows)))

    def task(self, rows: Ints, machine: SVC) -> CellTask:
        """Return what it takes to train a cell."""
        y = self.classes[self.labels[rows]]
        factors = None
        if not (self.factors == 1).all():
            own = np.unique(self.labels[rows])
            factors = dict(zip(self.classes[own].tolist(), self.factors[own].tolist(), strict=True))
        weight = None if self.weight is None else self.weight[rows]
        return CellTask(self.X[rows], y, weight, factors, machine)


@dataclass
class _Trained:
    """What a cell predicts by."""

    label: int
    machine: SVC | None = None
    status: Status | None = None  # why there is no machine, if there should be one


class _Run(NamedTuple):
    """The training of all cells."""

    model: PartitionedSVC
    training: _CellTraining
    cells: CellRows
    candidates: CellCandidates
    counting: clock.Clock
    trained: list[_Trained]
    bar: Bar

    def in_threads(self, todo: list[int], threads: int) -> None:
        """Train cells in this process, the largest first."""
        machine = self._template(max(1, threads // max(len(todo), 1)))
        if not named_kernel(machine).thread_safe:
            threads = 1

        def train(cell: int) -> None:
            if not self.counting.over:
                task = self.training.task(self.cells.rows[cell], machine)
                self._keep(cell, train_cell(task, self.candidates, self._left()))

        order = sorted(todo, key=lambda cell: -len(self.cells.rows[cell]))
        with one_blas_thread() if len(todo) > 1 else nullcontext():
            share_work(train, deque(order), min(threads, max(len(todo), 1)))

    def on_cluster(self, todo: list[int]) -> None:
        """Train cells on workers, several in each future."""
        client, machine = self.model.client, self._template(1)
        batches = [todo[k : k + _PER_FUTURE] for k in range(0, len(todo), _PER_FUTURE)]
        for k in range(0, len(batches), _FUTURES_AT_A_TIME):
            if self.counting.over:
                return
            some = batches[k : k + _FUTURES_AT_A_TIME]
            futures = [
                client.submit(
                    train_batch,
                    [self.training.task(self.cells.rows[cell], machine) for cell in batch],
                    self.candidates,
                    self._left(),
                    pure=False,  # so that rows are not hashed
                )
                for batch in some
            ]
            for batch, machines in zip(some, client.gather(futures), strict=True):
                for cell, trained in zip(batch, machines, strict=True):
                    self._keep(cell, trained)

    def _template(self, threads: int) -> SVC:
        gamma = self.candidates.gammas[0]
        machine = self.model._machine()  # noqa: SLF001 (a part of the same class)
        return machine.set_params(n_jobs=threads, gamma=gamma, random_state=self.candidates.seed)

    def _left(self) -> float | None:
        return None if self.model.max_time is None else self.counting.left

    def _keep(self, cell: int, machine: SVC) -> None:
        each = self.trained[cell]
        each.machine = machine.set_params(n_jobs=self.model.n_jobs)
        each.status = None
        self.bar.advance()
        if self.model.verbose:
            found = machine.certificate_
            sys.stdout.write(
                f"cell {cell + 1} of {len(self.trained)}: {len(self.cells.rows[cell])} rows, "
                f"C={machine.C:g}, {machine.kernel_!r}, gap {found.relative_gap:.2g}\n"
            )


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Silence the machines of cells: what they would say is said once, of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def _several(value: Any) -> tuple[Any, ...]:
    """Return values to choose from; a single one is no choice."""
    if isinstance(value, str | Real) or not hasattr(value, "__iter__"):
        return (value,)
    return tuple(each.item() if isinstance(each, np.generic) else each for each in value)


def _read_source(source: RowSource, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return all rows of a source, with its labels and weights."""
    if y is not None or sample_weight is not None:
        raise ValueError(
            "y and sample_weight must be None if X is a RowSource, which has labels and weights of "
            "its own: name them in mm.data.open(…, label=…, weight=…)."
        )
    parts = list(source)
    if any(part.y is None for part in parts):
        raise ValueError("This source has no labels: name them in mm.data.open(…, label=…).")
    weighted = all(part.weight is not None for part in parts)
    weight = np.concatenate([part.weight for part in parts]) if weighted else None
    return stacked([part.X for part in parts]), np.concatenate([part.y for part in parts]), weight
