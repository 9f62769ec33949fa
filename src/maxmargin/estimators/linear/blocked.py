"""Linear machines on rows that are read in blocks: from disk, or by the workers of a cluster."""

import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.data.opening import open as open_rows
from maxmargin.estimators.kernel_input import count_threads
from maxmargin.problems.blocked import BlockedProblem, Checkpoint, LossRule
from maxmargin.problems.problem import Intercept, Point, Status
from maxmargin.rows.blocks import Block, join
from maxmargin.rows.reading import note_reader
from maxmargin.rows.row_source import RowSource
from maxmargin.rows.survey import Survey, survey
from maxmargin.runtime.progress import progress
from maxmargin.solve import Result, describe_scales
from maxmargin.validation.data import LARGEST_PRODUCT, name_overflow, stacked

KEPT_NUMBERS = 1 << 22  # duals, slacks and labels of rows are kept in a model up to this many


def is_source(X: Any) -> bool:
    """Return whether rows are read in blocks: a RowSource, or a collection of Dask."""
    return isinstance(X, RowSource) or type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def as_source(X: Any, y: Any, sample_weight: Any = None) -> RowSource:
    """Return rows, labels and weights as a source."""
    if not isinstance(X, RowSource):
        return open_rows(X, y, weight=sample_weight)
    for name, given, option in (
        ("y", y, "y= or label="),
        ("sample_weight", sample_weight, "weight="),
    ):
        if given is not None:
            raise ValueError(
                f"{name} is given beside rows that mm.data.open opened: give it to mm.data.open, "
                f"as {option}, so that it is read with its rows."
            )
    return X


@dataclass(frozen=True)
class Opened:
    """Rows in blocks, and what is known of them."""

    source: RowSource
    survey: Survey
    blocks: Any

    @classmethod
    def of(cls, source: RowSource, *, targets: bool, threads: int | None) -> "Opened":
        """Survey rows and return them in blocks: on the workers of a cluster if there is one."""
        with progress("Surveying the rows", even=False):
            opened = cls._of(source, targets, threads)
        note_reader(opened.blocks)
        return opened

    @classmethod
    def _of(cls, source: RowSource, targets: bool, threads: int | None) -> "Opened":
        client = client_of(source)
        if client is None:
            from maxmargin.rows.on_disk import RowsOnDisk

            found = survey(source, targets=targets)
            blocks = RowsOnDisk(source, found, regression=targets, threads=threads)
            return cls(source, found, blocks)
        from maxmargin.rows.cluster import Cluster, connect
        from maxmargin.rows.on_dask import RowsOnDask, load_parts, survey_on_dask

        client = connect(client)
        parts = load_parts(source, client)
        found = survey_on_dask(source, client, targets=targets, parts=parts)
        remote = RowsOnDask(source, found, client, regression=targets, parts=parts)
        if source.options.checkpoint is None and Cluster(client).shares_files():
            # Else all iterations before would be made again when a worker is lost.
            folder = tempfile.mkdtemp(prefix="maxmargin-")
            weakref.finalize(remote, shutil.rmtree, folder, ignore_errors=True)
            source = source.with_options(checkpoint=folder)
        return cls(source, found, remote)

    def check(self, estimator: Any, *, reset: bool) -> None:
        """Note the columns, or compare them with those of the fit; raise if numbers overflow."""
        names = self.source.feature_names
        if reset:
            estimator.n_features_in_ = self.survey.d
            estimator.__dict__.pop("feature_names_in_", None)
            if names is not None:
                estimator.feature_names_in_ = np.array(names, dtype=object)
            return self._refuse_overflow()
        check_names(self.source, estimator)
        if self.survey.d != estimator.n_features_in_:
            raise ValueError(
                f"X has {self.survey.d} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        return self._refuse_overflow()

    def _refuse_overflow(self) -> None:
        names = self.source.feature_names
        if not self.survey.n:
            raise ValueError("The source has no rows: there is nothing to learn from.")
        if self.survey.largest_square >= LARGEST_PRODUCT:
            columns = self.survey.columns
            raise ValueError(name_overflow(names, columns.largest_column, columns.largest_value))

    def problems(
        self, rules: list[LossRule], intercept: Intercept, constant: float, told: str
    ) -> list[BlockedProblem]:
        """Return a problem for each loss; ``told`` is what else a checkpoint must agree in."""
        found = []
        for number, rule in enumerate(rules):
            checkpoint = self.checkpoint_of(number, f"{rule!r} {intercept} {constant} {told}")
            self._refuse_other_fit(checkpoint)
            found.append(
                BlockedProblem(self.blocks.with_loss(rule), intercept, constant, checkpoint)
            )
        return found

    def _refuse_other_fit(self, checkpoint: Checkpoint | None) -> None:
        """Raise if a folder holds how far another fit came: that would be lost."""
        saved = None if checkpoint is None else self.blocks.saved_state(checkpoint.folder)
        if checkpoint is None or saved is None or str(saved["digest"]) == checkpoint.digest:
            return
        raise ValueError(
            f"checkpoint={str(checkpoint.folder.parent)!r} holds a fit that was not finished, to "
            "other rows or with other parameters: name another folder, or remove this one if that "
            "fit need not go on."
        )

    def checkpoint_of(self, number: int, told: str) -> Checkpoint | None:
        """Return where the solver of a problem keeps how far it came, if it is to."""
        options = self.source.options
        if options.checkpoint is None:
            return None
        digest = f"{self.source.fingerprint()} {self._facts()} {told}"
        return Checkpoint(options.checkpoint / f"problem-{number}", options.every, digest)

    def _facts(self) -> str:
        """Return what is known of all rows, however they are cut: sources may know the first."""
        found = self.survey
        facts = found.n, found.size, found.columns.largest_value, found.columns.largest_column
        if found.labels is not None:
            return repr((*facts, found.counts.tolist(), found.classes.tolist()))
        return repr((*facts, None if found.targets is None else found.targets[:3]))

    def describe_scales(self) -> str:
        """Return a clause on columns of very different size, or nothing."""
        columns = self.survey.columns
        sizes = np.sqrt(columns.variances + columns.means**2)
        return describe_scales(sizes, columns.means, self.source.feature_names)


class RowsRead(NamedTuple):
    """All rows of a source, in memory."""

    opened: Opened
    X: Any
    y: Any
    weight: Any


def read_into_memory(machine: Any, source: RowSource) -> RowsRead:
    """Return all rows of a source, for machines that need them in memory.

    Raises ValueError if they do not fit into the memory that the source may take, or are on a
    cluster.
    """
    where = "are on a cluster"
    if client_of(source) is None:
        targets = not hasattr(machine, "class_weight")
        opened = Opened.of(source, targets=targets, threads=count_threads(machine.n_jobs))
        if opened.blocks.keeps_rows:
            parts = [part for part in source if part.X.shape[0]]
            X, y, weight = zip(*parts, strict=True)
            return RowsRead(
                opened,
                stacked(list(X)),
                None if y[0] is None else np.concatenate(y),
                None if weight[0] is None else np.concatenate(weight),
            )
        where = "take more than half of memory=, which the source may use"
    raise ValueError(
        f"{type(machine).__name__} needs all rows in memory, and these {where}: fit "
        "make_pipeline(Nystroem(), LinearSVC()) to the source, which reads it in blocks, or "
        "PartitionedSVC, which needs rows in memory but no kernel values of all of them; or fit "
        f"{type(machine).__name__} to some of the rows."
    )


def client_of(source: RowSource) -> Any:
    """Return the client of the cluster on which rows are worked on; None: this process does."""
    distributed = sys.modules.get("distributed")
    if source.options.client is not None or not source.on_dask or distributed is None:
        return source.options.client
    try:
        return distributed.get_client()
    except ValueError:
        return None


def vector_of(vector: Any) -> Any:
    """Return a vector of blocks as an array of all rows."""
    return vector if isinstance(vector, np.ndarray) else vector.whole()


class RowNumbers(NamedTuple):
    """What belongs to each row in a solved problem."""

    target: Floats  # ±1, or a number
    bound: Floats  # of its dual; 0: it takes no part
    beta: Floats
    scores: Floats  # f(x)

    @classmethod
    def of(cls, problem: BlockedProblem, result: Result) -> "RowNumbers":
        """Collect it from the blocks; scores are those that the certificate left there."""
        found = problem.blocks.map(_take_losses, reads_rows=False, merge=join)
        target, bound = (np.concatenate(column) for column in zip(*found, strict=True))
        scores = vector_of(problem.blocks.vector("score")) + result.certificate.intercept
        return cls(target, bound, np.array(vector_of(result.point.beta)), scores)


def _take_losses(block: Block) -> list[tuple[Floats, Floats]]:
    assert block.loss is not None
    loss = block.loss.take(slice(block.begin, block.end))
    return [(loss.target.copy(), np.maximum(loss.high, -loss.low))]  # no view of all the losses


def put_duals(problem: BlockedProblem, point: Point) -> Point:
    """Return a point with its duals, which are those of rows that cost, as a vector of the blocks.

    They are left out if there are not as many such rows.
    """
    if point.beta is None:
        return point
    found = problem.blocks.map(_take_losses, reads_rows=False, merge=join)
    costs = np.concatenate([bound for _, bound in found]) > 0
    if np.count_nonzero(costs) != len(point.beta):
        return replace(point, beta=None)
    beta = np.zeros(len(problem))
    beta[costs] = point.beta
    problem.blocks.put("known", beta)
    return replace(point, beta=problem.blocks.vector("known"))


_UNFINISHED = (Status.MAX_ITER, Status.MAX_TIME, Status.CALLBACK, Status.INTERRUPTED)


def remove_checkpoints(problems: list[BlockedProblem], results: list[Result]) -> None:
    """Remove what was kept in case that the fit had to go on from there, unless it still may."""
    if any(result.status in _UNFINISHED for result in results):
        return
    for problem in problems:
        if problem.checkpoint is not None:
            shutil.rmtree(problem.checkpoint.folder, ignore_errors=True)


@contextmanager
def nameless_rows() -> Iterator[None]:
    """Let arrays be used whose columns are known by name elsewhere, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def by_parts(source: RowSource, each: Callable[[Any], Any]) -> Any:
    """Return what a method gives for rows of all parts of a source, one after the other."""
    check_names(source, getattr(each, "__self__", None))
    with nameless_rows():
        return np.concatenate([each(source.load(part).X) for part in range(len(source))])


def check_names(source: RowSource, model: Any) -> None:
    """Raise if a model was fitted to columns of other names, or in another order."""
    known, names = getattr(model, "feature_names_in_", None), source.feature_names
    if known is None or names is None or known.tolist() == list(names):
        return
    same = sorted(known.tolist()) == sorted(names)
    how = "are in another order" if same else f"are {', '.join(map(repr, names))}"
    raise ValueError(
        f"The feature names should match those that were passed during fit: the columns {how}, "
        f"but were {', '.join(map(repr, known))}."
    )
