"""The page as a Jupyter widget, with the caller's own points."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from maxmargin._typing import Floats, Ints
from maxmargin.studio import messages, presets, python_code, static_files
from maxmargin.studio.pictures import training_data
from maxmargin.studio.scene import FARTHEST, MOST_CLASSES, MOST_POINTS, Scene
from maxmargin.studio.session import Session


class Studio:
    """Points in the plane that can be drawn and dragged in a notebook, and a model that follows.

    The same page as that of ``maxmargin studio``, as the output of a cell; it needs the ``jupyter``
    extra. What is drawn there comes back as ``X``, ``y`` and ``model``.

    Parameters
    ----------
    X : array-like or frame of shape (n, d), optional
        Up to 5,000 rows; the names of a frame's columns become those of the axes. By default two
        clouds are drawn.
    y : array-like of shape (n,), optional
        Labels of up to five classes, of any type. Without them all points have class 0.
    model : str, default="SVC"
        The model to begin with: Perceptron, AveragedPerceptron, VotedPerceptron, KernelPerceptron,
        HardMarginSVC, LinearSVC, SVC, NuSVC, BayesPointClassifier, OneClassSVM, SVR (the second
        column as a function of the first) or KernelPCA.
    kernel : str, default=""
        An expression such as ``"RBF(gamma) + Linear()"``; empty for that of the model.
    features : pair of int or str, optional
        The two columns of X to show, by number or name; needed if there are more than two.
    **parameters
        Where sliders stand, such as ``C=10``.

    Attributes
    ----------
    X : ndarray of shape (m, 2)
        The points as they are now.
    y : ndarray of shape (m,)
        Their labels, of the type that was given. Classes that were added on the page continue
        numbers, and are letters beside other labels.
    model : estimator
        The model of the page, fitted to these points and labels. It is fitted when it is asked for.
    scene : Scene
        Points, labels from 0, model and view, as the page has them.
    widget : anywidget.AnyWidget
        To be put into layouts of ipywidgets.

    Examples
    --------
    >>> import maxmargin as mm
    >>> studio = mm.Studio([[0, 0], [1, 0], [3, 2]], ["a", "a", "b"], model="LinearSVC", C=10)
    >>> studio.y.tolist()
    ['a', 'a', 'b']
    >>> studio.model.predict([[4, 4]]).tolist()
    ['b']
    >>> studio.close()
    """

    def __init__(
        self,
        X: Any = None,
        y: Any = None,
        *,
        model: str = "SVC",
        kernel: str = "",
        features: tuple[Any, Any] | None = None,
        **parameters: float,
    ) -> None:
        widget_class = _load_widget()
        if X is None:
            if y is not None:
                raise ValueError("y was given without X; give the points of these labels too")
            drawn = presets.make("gaussians")
            points, axes = np.column_stack([drawn["x"], drawn["y"]]), None
            y, view = np.array(drawn["label"]), drawn["view"]
        else:
            points, axes = _read_points(X, features)
            view = list(presets.view_of(points))
        y = np.zeros(len(points), dtype=np.int64) if y is None else np.asarray(y)
        self._dtype = y.dtype
        self._given, labels = _read_labels(y, len(points))
        self._classes = _extend(self._given)
        self._axes = axes
        sliders = {key: _plain_number(value) for key, value in parameters.items()}
        choice = {"model": model, "kernel": kernel, "parameters": sliders}
        self._first = messages.read_scene(points.tolist(), labels.tolist(), view, choice)
        self._fitted: tuple[Scene, Any] | None = None
        self._session = Session(self._send)
        self.widget = widget_class(state=self._state())
        self.widget.on_msg(self._receive)

    def __repr__(self) -> str:
        return f"<Studio: {self.scene.choice.model}, {len(self.X)} points>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        self.widget.state = self._state()  # shown once more, it begins with what is there now
        return self.widget._repr_mimebundle_(**options)  # IPython's protocol

    # ------------------------------------------------------------------- what comes back

    @property
    def scene(self) -> Scene:
        """What the page shows: points, labels from 0, model and view."""
        return self._session.scene or self._first

    @property
    def X(self) -> Floats:  # noqa: N802
        """The points as they are now."""
        return self.scene.points.copy()

    @property
    def y(self) -> npt.NDArray[Any]:
        """The labels as they are now, of the type that was given."""
        return self._labels(self.scene)

    @property
    def model(self) -> Any:
        """The model of the page, fitted to the points as they are now."""
        scene = self.scene
        if self._fitted is None or self._fitted[0] is not scene:
            X, y = training_data(scene)
            if y is scene.labels:
                y = self._labels(scene)
            model = python_code.plain_model(scene.choice)
            self._fitted = scene, model.fit(X) if y is None else model.fit(X, y)
        return self._fitted[1]

    def close(self) -> None:
        """Take the page away, and give back the threads that answered it."""
        self._first = self.scene
        self._session.close()
        self.widget.close()

    def _labels(self, scene: Scene) -> npt.NDArray[Any]:
        if not len(scene.labels) or scene.labels.max() < len(self._given):
            return np.array(self._given, dtype=self._dtype)[scene.labels]
        added = np.array(self._classes[: scene.labels.max() + 1])
        return added[scene.labels]

    def _state(self) -> dict[str, Any]:
        """Return the scene as the page keeps it."""
        scene = self.scene
        labels = scene.labels.tolist()
        return {
            "points": [[*point, k] for point, k in zip(scene.points.tolist(), labels, strict=True)],
            "names": [str(label) for label in self._classes],
            "axes": self._axes,
            "view": list(scene.view),
            "panes": [
                {
                    "model": scene.choice.model,
                    "parameters": dict(scene.choice.parameters),
                    "kernel": scene.choice.kernel,
                }
            ],
        }

    # ------------------------------------------------------------------- messages

    def _receive(self, _widget: Any, content: Any, _buffers: Any) -> None:
        self._session.receive(content)

    def _send(self, reply: dict[str, Any]) -> None:
        """Send a reply; it comes from a thread, and a kernel's session belongs to its loop."""
        loop = getattr(getattr(self.widget.comm, "kernel", None), "io_loop", None)
        if loop is None:
            self.widget.send(reply)
        else:
            loop.add_callback(self.widget.send, reply)


@cache
def _load_widget() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError as missing:
        raise ImportError("mm.Studio needs anywidget: pip install anywidget") from missing

    class StudioWidget(anywidget.AnyWidget):
        """The page; ``state`` is what it begins with."""

        _esm = static_files.module()
        _css = static_files.read("studio.css")
        state = traitlets.Dict().tag(sync=True)

    return StudioWidget


# ------------------------------------------------------------------- what is given


def _read_points(X: Any, features: Any) -> tuple[Floats, list[str] | None]:
    """Return two columns, and their names if there are any."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] < 2:
        raise ValueError(
            f"X must have two columns, got shape {tuple(X.shape)}; for a regression tube give "
            "np.column_stack([x, y])"
        )
    if features is None and X.shape[1] > 2:
        raise ValueError(f"X has {X.shape[1]} columns; choose two of them: features=(0, 1)")
    features = (0, 1) if features is None else features
    names = [str(name) for name in getattr(X, "columns", ())]
    known = {k: k for k in range(X.shape[1])} | {name: k for k, name in enumerate(names)}
    given = features if np.ndim(features) == 1 else ()
    chosen = [known[feature] for feature in given if feature in known]
    if len(given) != 2 or len(set(chosen)) != 2:
        raise ValueError(
            f"features must be two different columns of X, by number or name, got {features!r:.60}"
        )
    columns = X.iloc[:, chosen] if hasattr(X, "iloc") else X[:, chosen]
    points = check_array(columns, dtype=np.float64, ensure_min_samples=0, input_name="X")
    if len(points) > MOST_POINTS:
        raise ValueError(
            f"X has {len(points):,} rows, and the page can show {MOST_POINTS:,}; take a sample"
        )
    if not (np.abs(points) <= FARTHEST).all():
        raise ValueError(f"X must hold numbers up to {FARTHEST:g}; scale columns that are larger")
    return points, [names[k] for k in chosen] if names else None


def _read_labels(y: npt.NDArray[Any], n: int) -> tuple[list[Any], Ints]:
    """Return the classes in ascending order, and the number of each label among them."""
    if y.shape != (n,):
        raise ValueError(f"y must have one label for each of the {n} rows, got shape {y.shape}")
    if (y != y).any() or any(label is None for label in y.tolist()):
        raise ValueError("y has rows without a label; leave them out")
    try:
        classes = np.unique(y)
    except TypeError:
        raise ValueError("y mixes labels that have no order; make them all strings") from None
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"y has {len(classes)} classes, and the page can show {MOST_CLASSES}; keep the rows of "
            "some of them"
        )
    return classes.tolist(), np.searchsorted(classes, y).astype(np.int64)


def _plain_number(value: Any) -> Any:
    """Return a number as those of JSON; what is none is refused with the rest of the scene."""
    return np.asarray(value).item() if np.size(value) == 1 else value


def _extend(classes: list[Any]) -> list[Any]:
    """Return five labels: those given, and more of their kind for classes added on the page."""
    classes = classes or [0]
    if all(isinstance(label, bool | int | float) for label in classes):
        return [*classes, *(int(max(classes)) + k for k in range(1, MOST_CLASSES))][:MOST_CLASSES]
    letters = [letter for letter in "ABCDEFGHIJ" if letter not in classes]
    return [*classes, *letters[len(classes) :]][:MOST_CLASSES]
