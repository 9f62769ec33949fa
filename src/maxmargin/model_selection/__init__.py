"""Which parameters: paths along C, searches over grids, criteria from one fit, and streams."""

from typing import TYPE_CHECKING, NoReturn

from maxmargin.errors import no_attribute
from maxmargin.model_selection.criteria.bounds import span_estimate as span_estimate
from maxmargin.model_selection.criteria.bounds import xi_alpha_bound as xi_alpha_bound
from maxmargin.model_selection.criteria.leave_one_out import leave_one_out as leave_one_out
from maxmargin.model_selection.criteria.radius_margin import radius_margin as radius_margin
from maxmargin.model_selection.path.regularization_path import (
    regularization_path as regularization_path,
)
from maxmargin.model_selection.path.result import RegularizationPath as RegularizationPath
from maxmargin.model_selection.prequential import Prequential as Prequential
from maxmargin.model_selection.prequential import prequential as prequential
from maxmargin.model_selection.search.search_cv import SVCSearchCV as SVCSearchCV

__all__ = [
    "Prequential",
    "RegularizationPath",
    "SVCSearchCV",
    "leave_one_out",
    "prequential",
    "radius_margin",
    "regularization_path",
    "span_estimate",
    "xi_alpha_bound",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise no_attribute(__name__, name)
