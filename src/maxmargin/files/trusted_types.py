"""What a model file may hold: ``skops.io.load(path, trusted=mm.files.SKOPS_TRUSTED_TYPES)``.

None of these runs code of the file. Functions of yours, as kernels or callbacks, are not listed.
"""

from maxmargin.files.schemas import OURS

ENUMS = ("estimators.kernel_pca.kernel_pca.KernelPCAStatus", "problems.problem.Status")
_IN_SKOPS_ONLY = (
    "kernels.prepared.PreparedRows",
    "kernels.prepared.SparseRows",
    "model_selection.search.search_cv.SVCSearchCV",
    "problems.problem.Intercept",
)

SKOPS_TRUSTED_TYPES = [
    *(f"maxmargin.{place}" for place in (*OURS, *ENUMS, *_IN_SKOPS_ONLY)),
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "sklearn.metrics._scorer._PassthroughScorer",
]
