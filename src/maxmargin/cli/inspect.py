"""``maxmargin inspect``: what is in a model file, without predicting anything."""

from collections.abc import Iterator
from typing import Any

from maxmargin.cli.inputs import SavedModel, model_argument, read_model
from maxmargin.cli.models import steps_of
from maxmargin.cli.output import Exit, Output, command
from maxmargin.cli.training import certificate_to_json, stop_reason

SHOWN = 12  # classes and columns that are listed; --json has all

EXAMPLE = """
$ maxmargin inspect iris.mmg
file            iris.mmg: maxmargin model, format 1
steps           StandardScaler() → SVC(C=10.0)
classes         setosa, versicolor, virginica
kernel          RBF(gamma=0.25000000000000017)
support         32 support vectors of 105 training rows
columns         sepal length, sepal width, petal length, petal width; label class
…
"""


@command("inspect", example=EXAMPLE, see_also=("certify", "predict", "report"))
@model_argument
def inspect(output: Output, model: str, model_format: str | None) -> Exit:
    """Show what is in a model file: steps, classes, kernel, support vectors, columns, certificate.

    The certificate is shown as it was recorded when the model was fitted; maxmargin certify
    computes it anew from the data.
    """
    saved = read_model(model, model_format)
    output.facts(facts_of(saved))
    machine = saved.machine
    return output.finish(
        model=model,
        format=saved.format,
        header={name: value for name, value in saved.header.items() if name != "layout"},
        steps=[describe_step(step) for step in steps_of(saved.model)],
        task=saved.task,
        classes=getattr(saved.model, "classes_", None),
        kernel=describe_kernel(machine),
        support_vectors=count_vectors(machine),
        training_rows=count_rows(saved),
        features=getattr(saved.model, "n_features_in_", None),
        params={name: describe_value(v) for name, v in machine.get_params(deep=False).items()},
        stop_reason=stop_reason(machine),
        certificate=certificate_to_json(
            getattr(machine, "certificate_", None), getattr(machine, "tol", None)
        ),
        layout=None if saved.layout is None else saved.layout.to_json(),
    )


def facts_of(saved: SavedModel) -> Iterator[tuple[str, str]]:
    """Yield headings and sentences about a model."""
    machine = saved.machine
    version = f", format {saved.header['format']}" if "format" in saved.header else ""
    yield "file", f"{saved.path}: {saved.called}{version}"
    yield "steps", " → ".join(describe_step(step) for step in steps_of(saved.model))
    if hasattr(saved.model, "classes_"):
        yield "classes", shorten(list(map(str, saved.model.classes_)))
    if kernel := describe_kernel(machine):
        yield "kernel", kernel
    vectors, rows = count_vectors(machine), count_rows(saved)
    if vectors is not None:
        yield (
            "support",
            f"{vectors} support vectors" + (f" of {rows} training rows" if rows else ""),
        )
    if hasattr(saved.model, "n_features_in_"):
        yield "columns", describe_columns(saved)
    if reason := stop_reason(machine):
        yield "stopped", reason
    if hasattr(machine, "certificate_"):
        yield "certificate", f"{machine.certificate_} (as recorded)"
    if "versions" in saved.header:
        named = saved.header["versions"].items()
        yield "versions", ", ".join(f"{name} {number}" for name, number in named)


def describe_columns(saved: SavedModel) -> str:
    """Return which columns a data file needs."""
    layout = saved.layout
    count = f"{saved.model.n_features_in_} columns"
    if layout is None:
        return count
    if layout.kind == "svmlight":
        return f"{count} of svmlight text, indices from {0 if layout.zero_based else 1}"
    if layout.names is None:
        return f"{count} of a table without a header"
    names = shorten([layout.names[column.position] for column in layout.columns])
    return f"{names}; label {layout.label_name}" if layout.label_name else names


def shorten(names: list[str]) -> str:
    """Return names in a row, of many the first few."""
    more = f", … ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def describe_step(step: Any) -> str:
    """Return the code that makes a step."""
    from maxmargin.inspection.code import describe

    return describe(step)


def describe_kernel(machine: Any) -> str | None:
    """Return the kernel with the parameters that were used, or None for planes."""
    kernel = getattr(machine, "kernel_", None)
    return None if kernel is None else repr(kernel)


def describe_value(value: Any) -> Any:
    """Return a parameter as it stands in JSON."""
    return value if isinstance(value, str | int | float | bool | None | dict) else repr(value)


def count_vectors(machine: Any) -> int | None:
    """Return how many support vectors a machine has, if it has any."""
    vectors = getattr(machine, "support_vectors_", None)
    return None if vectors is None else int(vectors.shape[0])


def count_rows(saved: SavedModel) -> int | None:
    """Return how many rows the model was fitted to, if it knows; text models do not."""
    from maxmargin.inspection.model_view import view_model

    return view_model(saved.model).count_training_rows()
