"""Learning from a stream, and measuring it on the way: each block is predicted, then learnt from.

Dawid (1984) called this the prequential approach: the score of a row is that of a model which has
never seen it, and yet all rows are learnt from. Memory holds a block, the model, the outcomes of a
window of rows and a curve of a bounded number of points.
"""

import json
import math
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.files.native import load, save
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.validation.data import classes_of

ACCURACY, ABSOLUTE_ERROR = "accuracy", "mean absolute error"
_POINTS = 1000  # of a curve, at most; then every second one is dropped
_STATE, _MODEL = "stream.json", "model-{}.mmg"
_FORMAT = 1
_SHOWN = 10  # labels in a message


class CurvePoint(NamedTuple):
    """A point of a learning curve."""

    rows: int
    """How many rows had been learnt from."""
    score: float
    """Over all rows up to there."""
    recent: float
    """Over the rows of the window before it."""


@dataclass(frozen=True)
class Prequential:
    """How well a model predicted the rows of a stream before it learnt from them.

    Attributes
    ----------
    rows, blocks : int
        How many have been learnt from.
    metric : {"accuracy", "mean absolute error"}
        What the scores are: of classifiers and of regressors.
    weight : float
        The number of rows that were predicted, each as often as its weight says. Rows of the first
        block are not among them, unless the model had been fitted before.
    score : float
        Over all predicted rows; NaN if there are none.
    recent : float
        Over those of the last ``window`` rows.
    window : int
        As it was given.
    curve : list of CurvePoint
        ``np.array(curve)`` has columns of rows, score and recent score. There are 1000 points at
        most: in a long stream, they are farther apart.
    """

    rows: int
    blocks: int
    metric: str
    weight: float
    score: float
    recent: float
    window: int
    curve: list[CurvePoint]

    def __str__(self) -> str:
        shown = "{:.2%}" if self.metric == ACCURACY else "{:.6g}"
        if math.isnan(self.score):
            return f"{self.rows:,} rows: none predicted yet"
        last = f"{shown.format(self.recent)} over the last {min(self.window, self.rows):,}"
        return f"{self.rows:,} rows: {self.metric} {shown.format(self.score)}, {last}"


def prequential(
    model: Any,
    stream: Any,
    *,
    classes: Any = None,
    window: int = 1000,
    every: int = 10_000,
    checkpoint: Any = None,
    resume: bool = False,
    callback: Callable[[Prequential], Any] | None = None,
) -> Prequential:
    """Learn from a stream block by block, and measure how each block is predicted before that.

    Each block is first predicted and then given to ``partial_fit``. The model is the same, to the
    last bit, as after ``partial_fit`` of the same blocks.

    Parameters
    ----------
    model : estimator or Pipeline
        What has ``partial_fit``: Perceptron, AveragedPerceptron, LinearSVC, LinearSVR, …; it is
        changed in place. (KernelPerceptron and VotedPerceptron keep the rows that they were wrong
        about, so their memory grows.) Of a pipeline, the steps before the last one are fitted to
        the first block, unless they are fitted already, and then stay as they are.
    stream : iterable or mm.data.open(…)
        Blocks: ``(X, y)``, ``(X, y, weight)``, or what has these as attributes, as the blocks of
        ``mm.data.read_rows`` and ``mm.data.iterate_svmlight`` do; or single
        rows, with X of one dimension. Each is used once and not kept.
    classes : array-like, optional
        All labels that will ever occur. By default, those of the first block; a model cannot learn
        a class that comes later, so such a label is an error.
    window : int, default 1000
        The number of last rows over which ``recent`` is.
    every : int, default 10000
        After how many rows there is a checkpoint, a point of the curve and a call of ``callback``:
        with the first block that reaches them.
    checkpoint : path, optional
        A folder, made if there is none, in which model and counts are kept: a run that was killed
        can be resumed from it. A reader always finds a model and counts that belong together.
    resume : bool, default False
        Whether to continue from the checkpoint, if there is one. The stream is to give the same
        rows again: as many as had been learnt from are skipped (of ``mm.data.open(…)`` without
        reading them). With the same blocks, the model ends with the same bits as without a break.
    callback : callable, optional
        Called with the Prequential so far after every ``every`` rows and at the end, also one by
        an error or by Ctrl-C. If it returns True, the stream ends there.

    Returns
    -------
    Prequential
        Numbers of rows, scores and the curve.

    Notes
    -----
    Ctrl-C ends the run after the current block, with a checkpoint; the model keeps what it has
    learnt, and KeyboardInterrupt is raised as everywhere in Python.

    The larger the blocks, the older the model that predicts their last rows, and the quicker the
    run.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(5000, margin=0.1, random_state=0)
    >>> model = mm.AveragedPerceptron()
    >>> found = mm.model_selection.prequential(model, mm.data.chunks(X, y, rows=100), every=1000)
    >>> found.rows, found.score > 0.95, found.recent > found.score, len(found.curve)
    (5000, True, True, 5)
    """
    _check_counts(window, every)
    if resume and checkpoint is None:
        raise ValueError("resume=True needs checkpoint=…, the folder of the run to continue.")
    learner = _Streamed(model, classes)
    counts = _Counts(window=window)
    folder = None
    if checkpoint is not None:
        folder = _Folder(Path(checkpoint), model, stream)
        counts = folder.begin(counts, resume)
    run = _StreamRun(learner, counts, folder, every, callback)
    with _Interrupts() as interrupts:
        try:
            for block in _remaining(stream, counts):
                interrupts.hold()
                over = run.take(block)
                interrupts.release()
                if over:
                    break
        finally:
            run.finish()
    if not counts.rows:
        raise ValueError("The stream is empty: at least one row is needed.")
    return run.found()


def _check_counts(window: int, every: int) -> None:
    for name, value in (("window", window), ("every", every)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name}={value!r} is not valid: it must be an integer from 1 on.")


# ------------------------------------------------------------------- blocks


_BLOCK_ROWS = 1000  # of a source, that are predicted, then learnt, at a time


@dataclass(frozen=True)
class _StreamBlock:
    """A block of a stream."""

    X: Any
    y: Any
    weight: Any
    numbers: Any  # where the rows are in their file, if that is known

    def __len__(self) -> int:
        return len(self.y)

    def after(self, rows: int) -> "_StreamBlock":
        """Return the block without its first rows."""
        return self._take(slice(rows, None))

    def before(self, rows: int) -> "_StreamBlock":
        """Return the first rows of the block."""
        return self._take(slice(rows))

    def _take(self, rows: slice) -> "_StreamBlock":
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        rest = (self.y, self.weight, self.numbers)
        return _StreamBlock(X, *(None if part is None else part[rows] for part in rest))


def _as_rows(item: Any) -> _StreamBlock:
    """Return a block, whatever form it came in."""
    numbers = None
    if hasattr(item, "X") and hasattr(item, "y"):
        X, y, weight = item.X, item.y, getattr(item, "weight", None)
        numbers = getattr(item, "numbers", None)
    elif isinstance(item, tuple | list) and len(item) in (2, 3):
        X, y, weight = (*item, None)[:3]
    else:
        raise TypeError(
            f"A stream gives (X, y) or (X, y, weight), a block of rows each or a single one; this "
            f"one gave {type(item).__name__}."
        )
    if y is None:
        raise ValueError("The stream has rows without labels, and learning needs one for each.")
    if np.ndim(y) == 0:  # a single row
        X, y, weight = _as_table(X), [y], None if weight is None else [weight]
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    y = np.asarray(y)
    if X.shape[0] != len(y):
        raise ValueError(f"A block of the stream has {X.shape[0]} rows and {len(y)} labels.")
    return _StreamBlock(X, y, weight, numbers)


def _as_table(row: Any) -> Any:
    if hasattr(row, "tocsr") and len(row.shape) == 2:
        return row
    return np.asarray(row).reshape(1, -1)


def _is_source(stream: Any) -> bool:
    """Tell whether rows are in parts of which any can be read."""
    return hasattr(stream, "load") and hasattr(stream, "describe") and hasattr(stream, "__len__")


def _blocks_of_parts(source: Any, counts: "_Counts") -> Iterator[_StreamBlock]:
    """Iterate over the rows of a source, a thousand at a time, after those that were learnt."""
    for part in range(counts.part, len(source)):
        whole = _as_rows(source.load(part))
        rest = whole.after(counts.rows - counts.before)
        while len(rest) > _BLOCK_ROWS:
            yield rest.before(_BLOCK_ROWS)
            rest = rest.after(_BLOCK_ROWS)
        counts.part, counts.before = part + 1, counts.before + len(whole)
        yield rest


def _remaining(stream: Any, counts: "_Counts") -> Iterator[_StreamBlock]:
    """Iterate over the blocks that have not been learnt from."""
    if _is_source(stream):
        yield from _blocks_of_parts(stream, counts)
        return
    skip = counts.rows
    for item in stream:
        rows = _as_rows(item)
        if skip >= len(rows):
            skip -= len(rows)
            continue
        yield rows.after(skip) if skip else rows
        skip = 0
    if skip:
        raise ValueError(
            f"The stream has {counts.rows - skip:,} rows, and the checkpoint was written after "
            f"{counts.rows:,}: give the stream from its beginning, or start a new run."
        )


# ------------------------------------------------------------------- the model


class _Streamed:
    """A model that learns block by block, with the steps that come before it."""

    def __init__(self, model: Any, classes: Any) -> None:
        steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
        self.model, self._machine = model, steps[-1]
        self._before = [step for step in steps[:-1] if step not in (None, "passthrough")]
        if not hasattr(self._machine, "partial_fit"):
            raise TypeError(
                f"{type(self._machine).__name__} cannot learn from a stream, as it has no "
                "partial_fit: use Perceptron, AveragedPerceptron, LinearSVC or LinearSVR."
            )
        self.metric = ACCURACY if is_classifier(self._machine) else ABSOLUTE_ERROR
        if classes is not None and self.metric != ACCURACY:
            raise ValueError(
                f"classes are for classifiers, not for {type(self._machine).__name__}."
            )
        self._classes = None if classes is None else classes_of(np.asarray(classes))

    def prepare(self, rows: _StreamBlock) -> _StreamBlock:
        """Return rows after the steps before the last; the first rows are what these learn from."""
        X = rows.X
        for step in self._before:
            if not _is_fitted(step):
                step.fit(X, rows.y)
            X = step.transform(X)
        return replace(rows, X=X)

    def losses(self, rows: _StreamBlock) -> Floats | None:
        """Return what each prediction costs; None if the model cannot predict yet."""
        if not _is_fitted(self._machine):
            return None
        predicted = self._machine.predict(rows.X)
        if self.metric == ACCURACY:
            return np.asarray(predicted != rows.y, dtype=np.float64)
        return np.asarray(np.abs(predicted - rows.y.astype(np.float64)))

    def check(self, rows: _StreamBlock, place: "_Place") -> None:
        """Raise if a label is none of the classes."""
        if self.metric != ACCURACY:
            return
        classes = self._all_classes(rows.y)
        strange = ~np.isin(rows.y, classes)
        if strange.any():
            row = int(np.argmax(strange))
            known = ", ".join(map(repr, classes[:_SHOWN].tolist()))
            more = ", …" if len(classes) > _SHOWN else ""
            raise ValueError(
                f"{place.of(row)}: the label {rows.y[row]!s} is not among the classes of the "
                f"stream ({known}{more}), and a class cannot be added later: pass all of them as "
                "classes=[…] from the start, or correct the label."
            )

    def learn(self, rows: _StreamBlock) -> None:
        """Learn from rows."""
        given = {} if rows.weight is None else {"sample_weight": rows.weight}
        if self.metric == ACCURACY and not _is_fitted(self._machine):
            given["classes"] = self._all_classes(rows.y)
        self._machine.partial_fit(rows.X, rows.y, **given)

    def _all_classes(self, y: Any) -> Any:
        if self._classes is None:
            fitted = getattr(self._machine, "classes_", None) if _is_fitted(self._machine) else None
            self._classes = classes_of(y) if fitted is None else fitted
            if len(self._classes) < 2:
                raise ValueError(
                    f"The first block has rows of one class only ({self._classes[0]!s}), and a "
                    "class cannot be added later: pass all labels that will occur as classes=[…], "
                    "or begin with a larger block."
                )
        return self._classes


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


class _Place(NamedTuple):
    """Where rows of a block are, for messages."""

    before: int
    rows: _StreamBlock

    def of(self, row: int) -> str:
        """Return the place of a row."""
        number = "" if self.rows.numbers is None else f" (line {self.rows.numbers[row]})"
        return f"Row {self.before + row + 1:,} of the stream{number}"

    def refuse_infinite(self, X: Any) -> None:
        """Raise if a row has what is no finite number, with its place; sparse rows have none."""
        if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
            return
        strange = ~np.isfinite(X)
        if strange.any():
            row, column = (int(k) for k in np.argwhere(strange)[0])
            raise ValueError(
                f"{self.of(row)}: column {column + 1} of X is {X[row, column]}, which cannot be "
                "learnt from: leave such rows out, or put a fitted imputer before the model."
            )

    def __str__(self) -> str:
        if len(self.rows) == 1:
            return self.of(0)
        numbers, last = self.rows.numbers, self.before + len(self.rows)
        lines = "" if numbers is None else f" (lines {numbers[0]} to {numbers[-1]})"
        return f"Rows {self.before + 1:,} to {last:,} of the stream{lines}"


# ------------------------------------------------------------------- the counts


@dataclass
class _Counts:
    """What is known of a stream so far."""

    window: int
    rows: int = 0
    blocks: int = 0
    part: int = 0  # of a source, that comes next …
    before: int = 0  # … and the rows of those before it
    loss: float = 0.0  # Σ weight × loss of predicted rows
    weight: float = 0.0
    spacing: int = 1  # every how many reports there is a point of the curve
    reports: int = 0
    curve: list[CurvePoint] = field(default_factory=list)
    last: list[tuple[float, float]] = field(default_factory=list)  # of the window: loss, weight

    def add(self, losses: Floats | None, rows: _StreamBlock) -> None:
        """Count the rows of a block, and their losses if they were predicted."""
        self.rows, self.blocks = self.rows + len(rows), self.blocks + 1
        if losses is None:
            return
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self.loss += float(weight @ losses)
        self.weight += float(weight.sum())
        new = zip(losses[-self.window :].tolist(), weight[-self.window :].tolist(), strict=True)
        self.last = [*self.last, *new][-self.window :]

    def score(self, metric: str) -> float:
        """Return the score over all rows."""
        return _score(self.loss, self.weight, metric)

    def recent(self, metric: str) -> float:
        """Return the score over the window."""
        return _score(
            math.fsum(loss * weight for loss, weight in self.last),
            math.fsum(weight for _, weight in self.last),
            metric,
        )

    def note(self, metric: str) -> None:
        """Add a point to the curve, which stays short."""
        self.reports += 1
        if self.reports % self.spacing:
            return
        self.curve.append(CurvePoint(self.rows, self.score(metric), self.recent(metric)))
        if len(self.curve) > _POINTS:
            self.curve, self.spacing = self.curve[1::2], 2 * self.spacing


def _score(loss: float, weight: float, metric: str) -> float:
    if weight == 0:
        return math.nan
    return (weight - loss) / weight if metric == ACCURACY else loss / weight


class _StreamRun:
    """A run over a stream."""

    def __init__(
        self,
        learner: _Streamed,
        counts: _Counts,
        folder: "_Folder | None",
        every: int,
        callback: Callable[[Prequential], Any] | None,
    ) -> None:
        self._learner, self._counts, self._folder = learner, counts, folder
        self._every, self._callback = every, callback
        self._reported, self._whole = counts.rows, True

    def take(self, rows: _StreamBlock) -> bool:
        """Predict and learn a block; tell whether the callback ends the run."""
        counts = self._counts
        if not len(rows):
            counts.blocks += 1
            return False
        place = _Place(counts.rows, rows)
        try:
            self._learner.check(rows, place)
            prepared = self._learner.prepare(rows)
            place.refuse_infinite(prepared.X)
            losses = self._learner.losses(prepared)
            self._whole = False
            self._learner.learn(prepared)
        except ValueError as wrong:
            named = str(wrong).startswith("Row ")
            raise ValueError(str(wrong) if named else f"{place}: {wrong}") from wrong
        counts.add(losses, rows)
        self._whole = True
        if counts.rows // self._every > (counts.rows - len(rows)) // self._every:
            return self._report()
        return False

    def finish(self) -> None:
        """Report what was not reported, unless a block was given up in its middle."""
        if self._whole and self._counts.rows > self._reported:
            self._report()

    def found(self) -> Prequential:
        """Return the result so far."""
        counts, metric = self._counts, self._learner.metric
        score, recent = counts.score(metric), counts.recent(metric)
        return Prequential(
            counts.rows, counts.blocks, metric, counts.weight, score, recent, counts.window,
            list(counts.curve),
        )  # fmt: skip

    def _report(self) -> bool:
        self._reported = self._counts.rows
        self._counts.note(self._learner.metric)
        if self._folder is not None:
            self._folder.write(self._counts)
        return self._callback is not None and self._callback(self.found()) is True


# ------------------------------------------------------------------- checkpoints


class _Folder:
    """Model and counts of a run that can be resumed.

    The file of the counts names that of the model and is replaced last, so whenever the process is
    killed, it names the model that belongs to it.
    """

    def __init__(self, path: Path, model: Any, stream: Any) -> None:
        self._path, self._model = path, model
        self._layout = getattr(stream, "layout", None)
        self._source = str(stream.fingerprint()) if hasattr(stream, "fingerprint") else None
        self._described = repr(model)  # before it is fitted

    def begin(self, counts: _Counts, resume: bool) -> _Counts:
        """Return the counts of the checkpoint, if there is one, and give the model its state."""
        state = self._path / _STATE
        if not state.exists():
            self._path.mkdir(parents=True, exist_ok=True)
            return counts
        if not resume:
            raise ValueError(
                f"checkpoint={str(self._path)!r} holds a checkpoint of an earlier run: continue it "
                "with resume=True, or choose another folder."
            )
        try:
            found = json.loads(state.read_text(encoding="utf-8"))
            name, described, source = found["model"], found["described"], found["source"]
            earlier = _Counts(**found["counts"])
            earlier.curve = [CurvePoint(*point) for point in earlier.curve]
            right = found["format"] == _FORMAT and name == _MODEL.format(earlier.rows)
        except (ValueError, TypeError, KeyError) as wrong:
            raise ValueError(f"{state}: this is no checkpoint of a stream ({wrong}).") from wrong
        if not right:
            raise ValueError(f"{state}: this checkpoint is of another version; start a new run.")
        self._refuse_other(described, source, earlier.window, counts.window)
        loaded = vars(load(self._path / name))
        vars(self._model).clear()
        vars(self._model).update(loaded)
        return earlier

    def _refuse_other(self, described: str, source: Any, window: int, given: int) -> None:
        differs = {
            f"of {described}, and the model is {self._described}": described != self._described,
            f"with window={window}, and now it is {given}": window != given,
            "of other data": source != self._source,
        }
        for how, is_so in differs.items():
            if is_so:
                raise ValueError(
                    f"checkpoint={str(self._path)!r} holds a run {how}: resume it as it was "
                    "started, or choose another folder."
                )

    def write(self, counts: _Counts) -> None:
        """Write model and counts; then remove models of earlier checkpoints."""
        name = _MODEL.format(counts.rows)
        save(self._model, self._path / name, layout=self._layout)
        state = json.dumps(
            {
                "format": _FORMAT,
                "model": name,
                "described": self._described,
                "source": self._source,
                "counts": asdict(counts),
            }
        )
        write_atomically(
            self._path / _STATE, lambda draft: draft.write_text(state, encoding="utf-8")
        )
        for other in self._path.glob(_MODEL.format("*")):
            if other.name != name:
                other.unlink(missing_ok=True)


# ------------------------------------------------------------------- Ctrl-C


class _Interrupts:
    """Ctrl-C that waits for the end of a block, since half a block is no state to go on from."""

    def __enter__(self) -> "_Interrupts":
        self._held = self._asked = False
        main = threading.current_thread() is threading.main_thread()
        self._ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._ours:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def hold(self) -> None:
        """Let Ctrl-C wait; a second one does not."""
        self._held = True

    def release(self) -> None:
        """Raise KeyboardInterrupt if it had to wait."""
        self._held = False
        if self._asked:
            raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        if not self._held or self._asked:
            raise KeyboardInterrupt
        self._asked = True
