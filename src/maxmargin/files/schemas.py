"""What each class, by its place, has as its state: a line per attribute.

A line is ``name: kind[shape] limits``.
Parameters are left out where the class checks its own. A name with "?" may be missing. Kinds are

    float64 floats int32 int64 uint64 bool    arrays (floats: of 32 or 64 bits)
    objects                                   an array of Python objects
    rows                                      numbers of either size, as an array or as CSR
    labels texts                              classes in order; texts, as str or as objects
    int number flag word None any             single values; a word may be followed by all choices
    list tuple                                "list of …", "tuple of …": items of one kind
    pair shape                                two integers; integers that are a shape
    kernel, or the name of a class            an instance

"A | B" is either. Names in shapes stand for one number throughout an estimator, those that begin
with a dot within one object; "_" is any number. Floats are finite, unless "inf" or "nan" says what
else they may be; ">=0" and the like are limits; "<n" bounds indices; "unique" and "increasing" are
about all entries; an integer that is "=n" says how large n is.

A model with an ``origin_`` was read from a file of LIBSVM or LIBLINEAR: it has no certificate, and
lacks what only a fit leaves.
"""

FIRST = """
n_features_in_: int >0 =n_features
feature_names_in_?: texts[n_features]
_sklearn_output_config?: any
"""
_REPORT = """
status_: Status
n_iter_: int >=0
stop_reason_: word
"""
_SOLVED = """
certificate_?: Certificate | MulticlassCertificate
origin_?: word
solver_: word
trace_?: list of any
_tie_order?: int64[classes] unique <classes | None
"""
_CLASSES = """
classes_: labels[classes]
"""
_KERNEL_MACHINE = f"""{FIRST}{_SOLVED}
status_: Status
n_iter_?: int >=0 | int64[_] >=0
stop_reason_: word
shape_fit_: shape[n_rows,n_features]
kernel_: kernel
intercept_: float64[planes]
_scales: float64[planes] >=0
_solved: int64[solved] increasing <planes
support_: int64[sv] unique <n_rows
_duals: float64[dual_sides,sv]
dual_coef_: float64[sides,sv]
support_vectors_: rows[vectors,_]
n_support_: int32[counted] >=0
_weights?: float64[planes,n_features]
_weights_of?: float64[sides,sv]
_given_products?: float64[sv,planes]
"""
_KERNEL_CLASSIFIER = f"""{_KERNEL_MACHINE}{_CLASSES}
class_weight_: float64[classes] >=0
_scheme: word ovo ovr
calibration_?: Calibration
"""
_KERNEL_REGRESSOR = f"""{_KERNEL_MACHINE}
_support_targets?: float64[sv]
_spread?: number >0
"""
_LINEAR_MACHINE = f"""{FIRST}{_SOLVED}
status_: Status
n_iter_?: int >=0
stop_reason_: word
intercept_: float64[planes]
_signed_duals?: list of float64[_] | float64[_,_]
_known_duals?: list of KnownDuals
support_?: int64[sv] increasing <n_rows
dual_coef_?: float64[.problems,sv]
_support_rows?: rows[sv,n_features] | None
support_kind_?: texts[sv]
alpha_?: float64[n_rows] >=0 | float64[_,n_rows] >=0
slack_?: float64[n_rows] >=0 | float64[_,n_rows] >=0
_learners?: list of Learner
"""
_PERCEPTRON = f"""{FIRST}{_CLASSES}{_REPORT}
_seen: bool[classes]
intercept_: float64[planes]
margin_: number nan inf
mistake_bound_: number inf nan
epochs_: int >=0
mistakes_: int >=0 | number >=0
updates_: int >=0 | number >=0
trace_?: Trace | LinearTrace
"""
_LINEAR_PERCEPTRON = f"""{_PERCEPTRON}
coef_: float64[planes,n_features]
_state: LinearState
"""
_CERTIFICATE = """
primal: number inf
dual: number inf
infeasibility: number >=0 inf nan
drift: number >=0 inf nan
max_kkt_violation: number >=0 inf nan
distance_bound: number >=0 inf nan
intercept: number
intercept_cost: number inf nan
caveat: word
intercepts: tuple of number
rounding: number >=0 inf nan
terms?: number >=0
parts: tuple of Certificate
"""
_EPOCHS = """
mistakes: list of number
updates: list of number
"""
_STRUCTURED = f"""{_REPORT}
n_features_in_: int >0 =n_features
feature_names_in_?: texts[n_features]
classes_?: labels[classes]
model_: Multiclass | Chain
coef_: float64[size]
"""
_OUTPUTS = """
n_features_in_?: int >0 =n_features
feature_names_in_?: texts[n_features]
classes_?: labels[classes]
size_?: int >0 =size
"""
_KERNELS = {
    "compose": ("Columns", "Constant", "Power", "Product", "Scaled", "Sum"),
    "dot_products": ("Cosine", "Linear", "Polynomial", "Sigmoid"),
    "histograms": ("ChiSquared", "Intersection"),
    "precomputed": ("Precomputed",),
    "stationary": ("Laplacian", "RBF"),
}

OURS: dict[str, str] = {
    # ------------------------------------------------------------ kernel machines
    "estimators.svm.svc.SVC": f"""{_KERNEL_CLASSIFIER}
        _row_labels?: int32[n_rows] >=-1 <classes
        _row_costs?: float64[n_rows] >=0
        """,
    "estimators.svm.nu_svc.NuSVC": _KERNEL_CLASSIFIER,
    "estimators.svm.svr.SVR": _KERNEL_REGRESSOR,
    "estimators.svm.quantile_svr.QuantileSVR": _KERNEL_REGRESSOR,
    "estimators.svm.nu_svr.NuSVR": f"""{_KERNEL_REGRESSOR}
        epsilon_?: number
        """,
    "estimators.svm.one_class.OneClassSVM": f"""{_KERNEL_MACHINE}
        support_fraction_?: number >=0
        _full?: bool[sv]
        _shares?: float64[sv] >0
        """,
    "estimators.hard_margin.hard_margin.HardMarginSVC": f"""{FIRST}{_CLASSES}{_REPORT}
        certificate_: Certificate
        shape_fit_: shape[n_rows,n_features]
        kernel_: kernel
        _scheme: word ovo ovr
        _subproblems: list of pair >=-1 <classes
        intercept_: float64[planes]
        coef_?: float64[planes,n_features]
        alpha_: float64[n_rows] >=0 | float64[planes,n_rows] >=0
        support_: int64[sv] unique <n_rows
        dual_coef_: float64[planes,sv]
        support_kind_: texts[sv]
        n_support_: int64[classes] >=0
        support_vectors_: rows[vectors,_]
        _weights?: float64[planes,n_features]
        _weights_of?: float64[planes,sv]
        _given_products?: float64[sv,planes]
        margin_: number >0 inf | float64[planes] >0 inf
        """,
    # ------------------------------------------------------------ machines on cells
    "estimators.partitioned.partitioned_svc.PartitionedSVC": f"""{FIRST}{_CLASSES}{_REPORT}
        class_weight_: float64[classes] >=0
        cells?: word tree
        cells_: TreeCells
        n_cells_: int >0 =cells
        cell_sizes_: int64[cells] >=0
        machines_: list of any
        _reach: float64[cells] >=0
        _sole: int64[cells] >=0 <classes
        _unreached: bool[cells]
        """,
    "estimators.partitioned.cells.TreeCells": """
        directions: float64[.splits,n_features]
        thresholds: float64[.splits]
        children: int64[.splits,2]
        """,
    # ------------------------------------------------------------ linear machines
    "estimators.linear.linear_svc.LinearSVC": f"""{_LINEAR_MACHINE}{_CLASSES}
        _scheme: word ovo ovr crammer_singer
        coef_: float64[planes,n_features]
        _pairs: list of pair >=-1 <classes
        _joint?: tuple of float64[n_features,.present] | float64[.present]
        margin_?: number >0 inf | float64[planes] >0 inf
        _row_labels?: int32[n_rows] >=-1 <classes
        _row_costs?: float64[n_rows] >=0
        n_support_?: int64[classes] >=0
        calibration_?: Calibration
        """,
    "estimators.linear.linear_svr.LinearSVR": f"""{_LINEAR_MACHINE}
        coef_: float64[n_features]
        """,
    "estimators.linear.base.KnownDuals": """
        marks: uint64[.known]
        shares: float64[.known]
        reach: number >=0 inf
        """,
    "solvers.subgradient.Learner": """
        weights: Weights
        lift: number >=0
        ridge: number >=0
        clock: number >=0
        counted_from: number >=0
        """,
    "solvers.subgradient.Weights": """
        w: float64[n_features+1]
        sums: float64[n_features+1]
        squares: float64[n_features+1] >=0
        moments: float64[n_features+1] >=0
        total: float64[n_features+1]
        since: float64[n_features+1] >=0
        """,
    # ------------------------------------------------------------ what machines have in common
    "certificates.certificate.Certificate": _CERTIFICATE,
    "certificates.multiclass.MulticlassCertificate": _CERTIFICATE,
    "structured.problem.StructuredCertificate": f"""{_CERTIFICATE}
        least_primal: number inf
        beaten: tuple of int
        """,
    "estimators.probabilities.Calibration": """
        slope: float64[.slopes]
        offset: float64[.offsets]
        classes: tuple of pair >=-1 <classes
        n_classes: int =classes
        source: word
        """,
    # ------------------------------------------------------------ perceptrons
    "estimators.perceptron.perceptron.Perceptron": _LINEAR_PERCEPTRON,
    "estimators.perceptron.perceptron.AveragedPerceptron": _LINEAR_PERCEPTRON,
    "estimators.perceptron.voted.VotedPerceptron": f"""{_LINEAR_PERCEPTRON}
        _votes: list of Votes
        """,
    "estimators.perceptron.kernel.KernelPerceptron": f"""{_PERCEPTRON}
        kernel_: kernel
        support_?: int64[sv] unique >=0
        support_vectors_: rows[vectors,_]
        dual_coef_: float64[planes,sv]
        _counts: Counts
        _squared_norm: number >=0
        """,
    "solvers.perceptron.LinearState": """
        weights: float64[n_features] | float64[n_features,planes]
        intercept: float64[planes]
        lag: float64[_] | float64[_,_]
        lag_intercept: float64[_]
        counters: float64[4] >=0
        """,
    "solvers.perceptron.Counts": """
        visits: number >=0
        mistakes: number >=0
        updates: number >=0
        """,
    "estimators.perceptron.voted.Votes": """
        start: tuple of float64[n_features] | float64[n_features,planes] | float64[planes]
        rows: rows[.rows,n_features]
        updates: Updates
        visits: number >=0
        lift: number >=0
        """,
    "loops.records.Updates": """
        row: int64[.updates] >=0
        step: float64[.updates]
        clock: float64[.updates] >=0
        label: int64[.updates] <classes
        rival: int64[.updates] <classes
        """,
    "estimators.perceptron.base.Trace": f"""{_EPOCHS}
        criterion: list of number inf nan
        """,
    "estimators.perceptron.base.LinearTrace": f"""{_EPOCHS}
        criterion: list of number inf nan
        row: int64[.updates] >=0
        step: float64[.updates]
        label: int64[.updates] <classes
        rival: int64[.updates] <classes
        start: tuple of float64[planes,n_features] | float64[planes]
        lift: number >=0
        moved: rows[.updates,n_features]
        """,
    # ------------------------------------------------------------ structured outputs
    "structured.svc.StructuredSVC": f"""{_STRUCTURED}
        certificate_: StructuredCertificate
        solver_: word
        trace_?: list of any
        support_: int64[sv] >=0
        support_outputs_: any
        dual_coef_: float64[sv] >=0
        _trained: tuple of int >0 | float64[.examples] >=0
        """,
    "structured.perceptron.StructuredPerceptron": f"""{_STRUCTURED}
        _state: StructuredState
        _start_norm: number >=0
        _fitted_margin: number >=0
        radius_: number >=0
        largest_loss_: number >=0
        search_errors_: number >=0
        epochs_: int >=0
        mistakes_: int >=0 | number >=0
        updates_: int >=0 | number >=0
        trace_?: StructuredTrace
        """,
    "structured.perceptron.StructuredState": """
        weights: float64[size]
        lag: float64[_]
        counters: float64[3] >=0
        """,
    "structured.perceptron.StructuredTrace": f"""{_EPOCHS}
        example: int64[.steps] >=0
        step: float64[.steps]
        loss: float64[.steps]
        output: list of any
        difference: any
        start: float64[size]
        """,
    "structured.chain.Multiclass": _OUTPUTS,
    "structured.chain.Chain": _OUTPUTS,
    # ------------------------------------------------------------ Bayes points
    "estimators.bayes.bayes_point.BayesPointClassifier": f"""{FIRST}{_CLASSES}{_REPORT}
        shape_fit_: shape[n_rows,n_features]
        kernel_: kernel
        _pairs: list of pair >=-1 <classes
        _constant: number >=0
        _noise: number >=0
        _landmark_rows: int64[landmarks] <n_rows
        landmarks_: rows[vectors,_]
        _posteriors: list of Posterior
        residual_: number inf
        n_samples_: int >0
        effective_sample_size_: number inf nan
        r_hat_: number inf nan
        standard_error_: number inf nan
        rejected_: number >=0
        """,
    "estimators.bayes.bayes_point.Posterior": """
        draws: float64[.chains,.draws,.width]
        effective: number inf nan
        landmarks: int64[.landmarks] <landmarks | None
        triangle: float64[.landmarks,.landmarks] | None
        precision: number >=0
        """,
    # ------------------------------------------------------------ maps
    "estimators.kernel_pca.kernel_pca.KernelPCA": f"""{FIRST}
        status_: KernelPCAStatus
        n_iter_: int >=0
        kernel_: kernel
        gamma_?: number
        solver_: word
        rank_: int >=0
        n_components_: int >=0 =components
        n_samples_seen_: number >0
        eigenvalues_: float64[components]
        residuals_: float64[components] >=0 inf nan
        explained_variance_: float64[components]
        explained_variance_ratio_: float64[components]
        error_bound_: number >=0 inf nan
        angle_bound_?: number >=0 inf nan
        _indefinite?: tuple of any
        _projection: FeatureProjection | KernelProjection
        X_fit_: rows[_,_]
        eigenvectors_?: float64[_,_]
        _ridge?: RidgePreimage
        X_transformed_fit_?: float64[.kept,_]
        dual_coef_?: float64[.kept,n_features]
        _stream?: NystroemStream
        """,
    "estimators.kernel_pca.operators.FeatureProjection": """
        features: ExplicitFeatures
        mean: float64[.features]
        directions: float64[.features,components]
        """,
    "estimators.kernel_pca.operators.ExplicitFeatures": """
        kernel: kernel
        monomials: any
        """,
    "estimators.kernel_pca.operators.KernelProjection": """
        kernel_: kernel
        support_vectors_: rows[.vectors,_]
        coefficients: float64[.weighed,components]
        offset: float64[components]
        base: float64[.weighed]
        columns: int64[.weighed] unique <n_features | None
        """,
    "estimators.kernel_pca.preimage.RidgePreimage": """
        kernel: kernel
        Z: float64[.kept,.known]
        B: float64[.kept,n_features]
        mean: float64[n_features]
        """,
    "estimators.kernel_pca.operators.NystroemStream": """
        landmarks: Landmarks
        root: float64[.landmarks,.rank]
        noise: number >=0 inf
        spectrum: tuple of number
        moments: Moments
        missed: number
        negative: number
        """,
    "estimators.feature_maps.nystroem.Landmarks": """
        kernel: kernel
        rows: rows[.landmarks,n_features] | None
        indices: int64[.landmarks] unique
        threads: int | None
        """,
    "estimators.kernel_pca.operators.Moments": """
        eps: number >=0
        exact: flag
        count: int >=0
        weight: number >=0
        mean: float64[.features]
        scatter: float64[.features,.features]
        largest: number >=0
        """,
    "estimators.feature_maps.nystroem.Nystroem": f"""{FIRST}
        kernel_: kernel
        _type: any
        root_: float64[landmarks,components]
        eigenvalues_: float64[_]
        landmarks_: rows[vectors,_]
        landmark_indices_: int64[landmarks] unique
        n_components_: int >=0 =components
        error_rows_: int >=0
        error_: number
        relative_error_: number
        error_bound_: number inf
        spectral_estimate_: number inf
        """,
    # ------------------------------------------------------------ kernels
    **{f"kernels.{file}.{name}": "" for file, names in _KERNELS.items() for name in names},
}
