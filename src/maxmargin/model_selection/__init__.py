"""Which parameters: paths along C, searches over grids, criteria from one fit."""

from maxmargin.model_selection.compare_gp import compare_gp as compare_gp
from maxmargin.model_selection.criteria import span_estimate as span_estimate
from maxmargin.model_selection.criteria import xi_alpha_bound as xi_alpha_bound
from maxmargin.model_selection.criteria_leave_one_out import leave_one_out as leave_one_out
from maxmargin.model_selection.criteria_radius import radius_margin as radius_margin
from maxmargin.model_selection.map_gap import map_gap as map_gap
from maxmargin.model_selection.path import regularization_path as regularization_path
from maxmargin.model_selection.path_result import RegularizationPath as RegularizationPath
from maxmargin.model_selection.search import SVCSearchCV as SVCSearchCV
