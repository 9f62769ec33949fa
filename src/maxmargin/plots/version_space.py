"""All lines that separate two classes: as points of a sphere, and as a vote on the plane.

A line w·x + b = 0 is a point u = (w₁, w₂, b)/‖(w₁, w₂, b)‖ of the sphere, and a row puts a wall
through it: on one side are the lines that are right about the row. What all walls leave over is the
version space. With rows x̃ = (x₁, x₂, 1) scaled to length 1, the distance of u from a wall is
y u·x̃, so that the centre of the largest ball inside is the line of largest margin of these rows.
The Bayes point is the mean of all u inside.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats
from maxmargin.estimators import BayesPointClassifier, HardMarginSVC, Perceptron
from maxmargin.geometry import Hyperplane, window
from maxmargin.plots import planar, style
from maxmargin.plots.style import AMBER, GREEN, GREY, PINK, foreground

_GRID, _PLACES = 300, 121  # points along each side: of the sphere, and of the plane
_LEVELS = (0.05, 0.25, 0.75, 0.95)
_WIDE = 1.06  # half of the window that shows the whole sphere
_ROOM = 1.5  # times as far as the draws reach, if that is less
_DRAWS = 8000


@dataclass(eq=False, repr=False)
class VersionSpaceDisplay(style.Display):
    """The separators of two classes in the plane, and where their votes are open.

    Parameters
    ----------
    X, y : ndarray of shape (n, 2) and (n,)
        The points and their labels.
    classes : ndarray of shape (2,)
        Both labels; lines are positive on the side of the second.
    draws : ndarray of shape (k, 3)
        Separators (w₁, w₂, b), drawn from all of them, each of length 1.
    central : (ndarray of shape (2,), float)
        Weights and intercept of the line of largest margin.
    ball_centre : ndarray of shape (3,)
        The centre of the largest ball in the version space, of length 1.
    perceptrons : ndarray of shape (p, 3)
        Separators that perceptrons found, each of length 1.
    view : {"sphere", "plane"}, default="sphere"
        What is drawn: the version space with its walls, or the vote on the plane.
    feature_names : (str, str), default=("x₁", "x₂")
        Names of the axes of the plane.

    Attributes
    ----------
    bayes_point : ndarray of shape (3,)
        The direction of the mean of the draws.
    walls : ndarray of shape (n, 3)
        y·(x₁, x₂, 1), each of length 1: the version space is where all products with them are
        positive.
    walls_ : list of Line2D
        With view="sphere": the walls that the window shows.
    space_ : QuadContourSet
        With view="sphere": the version space.
    vote_ : QuadContourSet
        With view="plane": where the vote is even.
    central_ : Line2D
        With view="plane": the line of largest margin.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(7, margin=0.5, random_state=0)
    >>> display = mm.plots.VersionSpaceDisplay.from_data(X, y)
    >>> inside = display.walls @ display.draws.T > 0
    >>> bool(inside.all()), bool((display.walls @ display.bayes_point > 0).all())
    (True, True)
    """

    _: KW_ONLY
    X: Floats
    y: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    draws: Floats
    central: tuple[Floats, float]
    ball_centre: Floats
    perceptrons: Floats
    view: str = "sphere"
    feature_names: tuple[str, str] = ("x₁", "x₂")
    _size = (4.6, 5.0)

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        view: str = "sphere",
        n_perceptrons: int = 30,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Draw from all separators of two classes, and show them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, 2)
            Points that a line can separate.
        y : array-like of shape (n,)
            Labels of two classes.
        view : {"sphere", "plane"}, default="sphere"
            What to draw.
        n_perceptrons : int ≥ 0, default=30
            Number of perceptrons to run, from different starts and in different orders.
        random_state : int, Generator or None, default=0
            Seed of draws, starts and orders.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Raises
        ------
        NotSeparableError
            If no line separates the classes; its ``witness`` proves it.
        """
        if view not in ("sphere", "plane"):
            raise ValueError(f"view must be 'sphere' or 'plane', got {view!r}")
        if n_perceptrons < 0:
            raise ValueError(f"n_perceptrons must be 0 or more, got {n_perceptrons!r}")
        data = planar.check_planar(X, y)
        rng = np.random.default_rng(random_state)
        model = HardMarginSVC().fit(data.X, data.y)
        rows, signs = _unit_rows(data.X), planar.signs(data.y, data.classes)
        seed = int(rng.integers(2**31))
        sampled = BayesPointClassifier(intercept_scaling=0, n_samples=_DRAWS, random_state=seed)
        return cls(
            **data._asdict(),
            draws=_unit(sampled.fit(rows, signs).samples_[0]),
            central=(model.coef_[0], float(model.intercept_[0])),
            ball_centre=_unit(HardMarginSVC(intercept="none").fit(rows, signs).coef_)[0],
            perceptrons=_perceptrons(rows, signs, n_perceptrons, rng),
            view=view,
        ).plot(ax)

    @property
    def walls(self) -> Floats:
        """The normals of the walls, which point inwards."""
        return _unit_rows(self.X) * planar.signs(self.y, self.classes)[:, np.newaxis]

    @property
    def bayes_point(self) -> Floats:
        """The mean of all separators, of length 1."""
        return _unit(self.draws.mean(axis=0))

    def probability(self, X: Any) -> Floats:
        """Return the share of the draws that put each point on the side of the second class."""
        rows = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])
        return np.asarray((rows @ self.draws.T > 0).mean(axis=1))

    def _draw(self, ax: Any) -> None:
        if self.view == "sphere":
            self._draw_sphere(ax)
        else:
            self._draw_plane(ax)
        style.legend_below(ax, 2)
        style.settle(ax.figure)

    # ------------------------------------------------------------ the sphere

    def _draw_sphere(self, ax: Any) -> None:
        """Draw the half of the sphere around the Bayes point, as seen from far away."""
        frame = _frame(self.bayes_point)
        reach = np.abs(self.draws @ frame[:2].T).max()
        half = min(_WIDE, _ROOM * float(reach))
        side = np.linspace(-half, half, _GRID)
        flat = np.stack(np.meshgrid(side, side), axis=-1)
        square = 1 - (flat**2).sum(axis=-1)
        u = np.concatenate([flat, np.sqrt(np.maximum(square, 0))[..., np.newaxis]], axis=-1) @ frame
        inside = np.where(square > 0, (u @ self.walls.T).min(axis=-1), -1.0)
        fill = {"levels": [0, 2], "colors": [AMBER], "alpha": 0.35, "zorder": 0.5}
        self.space_ = ax.contourf(side, side, inside, **fill)
        turn = np.linspace(0, 2 * np.pi, 2 * _GRID)
        circle = np.column_stack([np.cos(turn), np.sin(turn)])
        if half == _WIDE:
            ax.plot(*circle.T, color=foreground(ax), linewidth=1.0)
        self.walls_ = []
        for k, label in enumerate(self.classes):
            own = self.walls[self.y == label]
            options = {"color": style.colour(k), "linewidth": 1.0, "alpha": 0.75}
            for i, wall in enumerate(own):
                across = _frame(wall)[:2]
                seen = circle @ across @ frame.T
                seen[seen[:, 2] < 0] = np.nan
                name = {"label": f"walls of {style.text(label, 12)}"} if i == 0 else {}
                self.walls_ += ax.plot(*seen[:, :2].T, **options, **name)
        self._draw_points(ax, frame, circle)
        ax.set(xlim=(-half, half), ylim=(-half, half), aspect="equal", xticks=[], yticks=[])
        ax.set(xlabel="seen from above the Bayes point", ylabel="(w₁, w₂, b) of length 1")
        ax.set_title("All separators: the version space")

    def _draw_points(self, ax: Any, frame: Floats, circle: Floats) -> None:
        """Draw the ball, its centre, the Bayes point and the perceptrons."""
        centre, radius = self.ball_centre, float((self.walls @ self.ball_centre).min())
        ball = np.sqrt(1 - radius**2) * centre + radius * circle @ _frame(centre)[:2]
        ax.plot(*(ball @ frame[:2].T).T, color=GREEN, linewidth=1.2, linestyle="--")
        marks = [
            (self.perceptrons, {"marker": ".", "s": 26, "c": GREY, "label": "perceptrons"}),
            (centre, {"marker": "P", "s": 60, "c": GREEN, "label": "largest ball (SVM)"}),
            (self.bayes_point, {"marker": "*", "s": 110, "c": PINK, "label": "Bayes point"}),
        ]
        for points, options in marks:
            if len(points):
                flat = np.atleast_2d(points) @ frame[:2].T
                ax.scatter(*flat.T, zorder=3, linewidths=0, **options)

    # ------------------------------------------------------------ the plane

    def _draw_plane(self, ax: Any) -> None:
        """Draw the points, the probabilities, and the line of largest margin."""
        seen = window(self.X, equal=True, share=0.35)
        sides = [np.linspace(*ends, _PLACES) for ends in zip(*seen[:2], strict=True)]
        places = np.stack(np.meshgrid(*sides), axis=-1)
        vote = np.concatenate([self.probability(row) for row in places]).reshape(_PLACES, _PLACES)
        colours = {"cmap": _between(style.colour(0), style.colour(1)), "vmin": 0, "vmax": 1}
        ends = tuple(np.column_stack(seen[:2]).ravel())
        ax.imshow(vote, extent=ends, origin="lower", alpha=0.35, zorder=0.2, **colours)
        thin = {"colors": [foreground(ax)], "linewidths": 0.7, "linestyles": ":", "zorder": 1.0}
        lines = ax.contour(*sides, vote, levels=_LEVELS, **thin)
        ax.clabel(lines, fmt=lambda level: f"{level:.0%}", fontsize=7)
        even = {"colors": [PINK], "linewidths": 2.2, "zorder": 2.0}
        self.vote_ = ax.contour(*sides, vote, levels=[0.5], **even)
        ax.plot([], [], color=PINK, linewidth=2.2, label="even vote, P = ½")
        line = {"color": GREEN, "linewidth": 1.8, "linestyle": "--", "label": "largest margin"}
        self.central_ = planar.draw_line(ax, Hyperplane(*self.central), seen, **line)
        planar.draw_points(ax, self, seen)
        ax.set_title("The vote of all separators")
        planar.write_messages(ax, len(self.X), f"{len(self.draws):,} draws")


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def _unit_rows(X: Floats) -> Floats:
    """Return (x₁, x₂, 1) of length 1."""
    return _unit(np.column_stack([X, np.ones(len(X))]))


def _frame(u: Floats) -> Floats:
    """Return three orthogonal rows of length 1, the last of which is u."""
    across = np.linalg.svd(u[np.newaxis])[2][1:]
    first = across[0]
    return np.array([first, np.cross(u, first), u])


def _between(first: str, second: str) -> Any:
    """Return a map of colours from one over grey to the other."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("vote", [first, "#9a9a9a", second])


def _perceptrons(rows: Floats, signs: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return where perceptrons stop, except those that give up before they separate."""
    found = []
    for _ in range(count):
        model = Perceptron(
            fit_intercept=False,
            init=(rng.standard_normal(3), 0.0),
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            w = model.fit(rows, signs).coef_[0]
        if (signs * (rows @ w) > 0).all():
            found.append(w)
    return _unit(np.array(found).reshape(-1, 3)) if found else np.empty((0, 3))
