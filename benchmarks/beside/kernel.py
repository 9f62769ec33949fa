"""Kernel SVMs beside LIBSVM and oneDAL: gap against seconds, and a proof each.

The parameters are ours: what is customary for a set, or the best of a small grid.
"""

from dataclasses import dataclass, replace

from benchmarks.beside import races
from benchmarks.beside.objective import Objective
from benchmarks.beside.race import Case
from benchmarks.datasets import REGRESSION, Dataset, load, sampled, scaled, with_unit_targets
from benchmarks.options import Options
from benchmarks.report import Report

TARGETS = (1e-2, 1e-3, 1e-4)
EPSILON = 0.1  # of targets with standard deviation 1
QUICK_ROWS = 400


@dataclass(frozen=True)
class Setting:
    """How a set is learnt from; ``rows`` bounds how many of them are drawn."""

    name: str
    scaling: str
    C: float
    gamma: float
    rows: int = 10**9

    @property
    def objective(self) -> Objective:
        """What is minimised."""
        return Objective(self.C, self.gamma, EPSILON if self.name in REGRESSION else None)


SETTINGS = (
    Setting("a9a", "as published", 1.0, 0.05),
    Setting("ijcnn1", "as published", 32.0, 2.0),
    Setting("usps", "as published", 10.0, 1 / 128),
    Setting("mnist", "/255", 10.0, 0.02, rows=10_000),
    Setting("magic04", "standardised", 10.0, 0.1),
    Setting("satimage", "[-1,1]", 16.0, 1.0),
    Setting("pendigits", "[-1,1]", 8.0, 0.5),
    Setting("letters", "[-1,1]", 8.0, 0.25),
    Setting("shuttle", "[-1,1]", 2048.0, 8.0),
    Setting("higgs-7k", "standardised", 8.0, 1 / 128),
    Setting("mushrooms", "as published", 2.0, 0.125),
    Setting("svmguide1", "[-1,1]", 2.0, 2.0),
    Setting("cpusmall", "[-1,1]", 32.0, 0.125),
    Setting("casp", "standardised", 2.0, 0.5, rows=10_000),
    Setting("abalone", "[-1,1]", 128.0, 0.125),
)
# The race that the documents quote: every real set of at most 10,000 rows and 300 columns.
QUOTED = (
    "usps", "satimage", "pendigits", "higgs-7k", "mushrooms", "svmguide1", "cpusmall", "casp",
    "abalone",
)  # fmt: skip


def prepared(setting: Setting, options: Options) -> Dataset:
    """Return a set as it is learnt from: rows drawn at random, dense, scaled, in float64."""
    dataset = load(setting.name, options.data)
    dataset = sampled(dataset, options.at_most(setting.rows, QUICK_ROWS))
    dataset = scaled(dataset, setting.scaling)
    return with_unit_targets(dataset) if setting.name in REGRESSION else dataset


def _cases(name: str, options: Options) -> list[Case]:
    (setting,) = (setting for setting in SETTINGS if setting.name == name)
    notes = f"columns {setting.scaling}"
    return [Case(name, prepared(setting, options), setting.objective, TARGETS, notes)]


def run(options: Options) -> Report:
    """Race; ``--defaults`` alone races on the sets that are quoted."""
    if options.defaults and not options.only:
        options = replace(options, only=QUOTED)
    return races.run("kernel", [setting.name for setting in SETTINGS], _cases, options)
