"""Steps of scikit-learn that a file can hold, by their places: their state as in ``schemas``."""

from maxmargin.files.schemas import FIRST

_VECTORIZER = """
fixed_vocabulary_: flag
vocabulary_: any
stop_words_?: any
_sklearn_output_config?: any
"""

STEPS: dict[str, str] = {
    "sklearn.pipeline.Pipeline": "",
    "sklearn.compose.ColumnTransformer": f"""{FIRST}
        transformers_: list of any
        output_indices_: any
        sparse_output_: flag
        _columns: list of any
        _remainder: tuple of any
        _transformer_to_input_indices: any
        _n_features?: int =n_features
        _name_to_fitted_passthrough?: any
        """,
    "sklearn.preprocessing.StandardScaler": f"""{FIRST}
        n_samples_seen_: number >=0 | floats[n_features] >=0 | int64[n_features] >=0
        mean_: float64[n_features] nan | None
        var_: float64[n_features] >=0 nan | None
        scale_: float64[n_features] >0 nan | None
        """,
    "sklearn.preprocessing.MinMaxScaler": f"""{FIRST}
        n_samples_seen_: number >=0
        scale_: floats[n_features] nan inf
        min_: floats[n_features] nan inf
        data_min_: floats[n_features] nan
        data_max_: floats[n_features] nan
        data_range_: floats[n_features] nan
        """,
    "sklearn.preprocessing.MaxAbsScaler": f"""{FIRST}
        n_samples_seen_: number >=0
        max_abs_: floats[n_features] nan
        scale_: floats[n_features] >0 nan
        """,
    "sklearn.preprocessing.RobustScaler": f"""{FIRST}
        center_: floats[n_features] nan | None
        scale_: floats[n_features] >0 nan | None
        """,
    "sklearn.preprocessing.Normalizer": FIRST,
    "sklearn.preprocessing.FunctionTransformer": """
        n_features_in_?: int >0 =n_features
        feature_names_in_?: texts[n_features]
        _sklearn_output_config?: any
        """,
    "sklearn.impute.SimpleImputer": f"""{FIRST}
        statistics_: floats[n_features] nan inf | int64[n_features] | objects[n_features]
        indicator_: MissingIndicator | None
        _fit_dtype: any
        _fill_dtype?: any
        """,
    "sklearn.impute.MissingIndicator": f"""{FIRST}
        features_: int64[.flags] increasing <n_features
        _n_features: int =n_features
        _precomputed: flag
        """,
    "sklearn.preprocessing.OneHotEncoder": f"""{FIRST}
        categories_: list of any
        _infrequent_enabled: flag
        _infrequent_indices?: list of int64[_] increasing | None
        _default_to_infrequent_mappings?: list of int64[_] >=0 | None
        _drop_idx_after_grouping: objects[n_features] | None
        drop_idx_: objects[n_features] | None
        _n_features_outs: list of int >=0
        """,
    "sklearn.feature_extraction.text.TfidfVectorizer": f"""{_VECTORIZER}
        _tfidf: TfidfTransformer
        """,
    "sklearn.feature_extraction.text.CountVectorizer": _VECTORIZER,
    "sklearn.feature_extraction.text.TfidfTransformer": """
        n_features_in_: int >0 =words
        feature_names_in_?: texts[words]
        idf_?: floats[words] >0
        _sklearn_output_config?: any
        """,
}
