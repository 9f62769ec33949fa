"""What a model file may hold: ``skops.io.load(path, trusted=mm.files.SKOPS_TRUSTED_TYPES)``.

None of these runs code of the file. Functions of yours, as kernels or callbacks, are not listed.
The native file (``maxmargin.files.native``) finds classes in the same list, by ``MODULES``.
"""

_OURS = {
    "certificates": [
        "certificate.Certificate",
        "multiclass.MulticlassCertificate",
    ],
    "estimators": [
        "bayes.bayes_point.BayesPointClassifier",
        "bayes.bayes_point.Posterior",
        "feature_maps.nystroem.Landmarks",
        "feature_maps.nystroem.Nystroem",
        "hard_margin.hard_margin.HardMarginSVC",
        "kernel_pca.kernel_pca.KernelPCA",
        "kernel_pca.kernel_pca.KernelPCAStatus",
        "kernel_pca.operators.ExplicitFeatures",
        "kernel_pca.operators.FeatureProjection",
        "kernel_pca.operators.KernelProjection",
        "kernel_pca.operators.Moments",
        "kernel_pca.operators.NystroemStream",
        "kernel_pca.preimage.RidgePreimage",
        "linear.base.KnownDuals",
        "linear.linear_svc.LinearSVC",
        "linear.linear_svr.LinearSVR",
        "probabilities.Calibration",
        "svm.nu_svc.NuSVC",
        "svm.nu_svr.NuSVR",
        "svm.one_class.OneClassSVM",
        "svm.quantile_svr.QuantileSVR",
        "partitioned.cells.TreeCells",
        "partitioned.partitioned_svc.PartitionedSVC",
        "perceptron.kernel.KernelPerceptron",
        "perceptron.perceptron.AveragedPerceptron",
        "perceptron.perceptron.Perceptron",
        "perceptron.base.LinearTrace",
        "perceptron.base.Trace",
        "perceptron.voted.VotedPerceptron",
        "perceptron.voted.Votes",
        "svm.svc.SVC",
        "svm.svr.SVR",
    ],
    "kernels": [
        "compose.Columns",
        "compose.Constant",
        "compose.Power",
        "compose.Product",
        "compose.Scaled",
        "compose.Sum",
        "dot_products.Cosine",
        "dot_products.Linear",
        "dot_products.Polynomial",
        "dot_products.Sigmoid",
        "histograms.ChiSquared",
        "histograms.Intersection",
        "precomputed.Precomputed",
        "prepared.PreparedRows",
        "prepared.SparseRows",
        "stationary.Laplacian",
        "stationary.RBF",
    ],
    "loops": ["records.Updates"],
    "model_selection": ["search.search_cv.SVCSearchCV"],
    "problems": ["problem.Intercept", "problem.Status"],
    "structured": [
        "chain.Chain",
        "chain.Multiclass",
        "perceptron.StructuredPerceptron",
        "perceptron.StructuredState",
        "perceptron.StructuredTrace",
        "problem.StructuredCertificate",
        "svc.StructuredSVC",
    ],
    "solvers": [
        "perceptron.Counts",
        "perceptron.LinearState",
        "subgradient.Learner",
        "subgradient.Weights",
    ],
}

MODULES = {
    path.rpartition(".")[2]: f"maxmargin.{room}.{path.rpartition('.')[0]}"
    for room, names in _OURS.items()
    for path in names
}

SKOPS_TRUSTED_TYPES = [
    *(f"maxmargin.{room}.{name}" for room, names in _OURS.items() for name in names),
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "sklearn.metrics._scorer._PassthroughScorer",
]
