"""Draw the pictures of the gallery anew: docs/images/NAME.png.

    python tools/gallery.py [NAME ...]

The site runs the same examples, and takes its text from their docstrings: see
docs/_extensions/gallery_pages.py.
"""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTIONS = {
    "The perceptron": [
        "half_spaces",
        "step_neuron",
        "and_neuron",
        "bias_as_a_feature",
        "one_update",
        "perceptron_film",
        "perceptron_two_gaussians",
        "perceptron_criterion",
        "criterion_surface",
        "perceptron_rates_and_overlap",
        "the_mistake_bound",
        "late_mistake",
        "one_pass_or_many",
    ],
    "Margins": [
        "many_separators",
        "margins",
        "central_plane",
        "separability_witnesses",
        "margin_and_test_error",
        "version_space_circle",
        "version_space",
        "vote_of_all_separators",
        "average_beside_line",
        "support_vector_kinds",
        "large_and_small_C",
        "C_path",
        "C_and_test_error",
        "hinge_family",
        "the_logistic_limit",
        "svm_ridge_logistic",
        "convergence",
    ],
    "Kernels": [
        "circle_lift",
        "gaussian_lift",
        "bumps_and_rbf",
        "bumps_become_a_machine",
        "rbf_boundary",
        "gram_matrix",
        "kernel_pca_two_classes",
        "draws_from_a_prior",
        "svm_beside_gp",
        "millions_of_rows",
    ],
    "Beyond two classes": [
        "multiclass_regions",
        "svr_tube",
        "one_class",
        "scores_and_probabilities",
    ],
    "Structure": ["reading_numbers", "ranking_model"],
    "Choosing": ["ladder_of_separability", "overlap_and_neighbours", "search_map"],
}


def words(name: str) -> tuple[str, str]:
    """Return the title of an example, and its explanation without the command line."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(source)) or ""
    title, _, rest = said.partition("\n")
    paragraphs = textwrap.dedent(rest).strip().split("\n\n")
    kept = [p for p in paragraphs if not p.lstrip().startswith("python examples/")]
    return title.rstrip("."), "\n\n".join(kept)


def picture(name: str) -> Path:
    """Return where the picture of an example is."""
    return ROOT / "docs" / "images" / f"{name}.png"


def draws(script: Path) -> bool:
    """Return whether an example draws a picture; others print what they have to say."""
    source = script.read_text(encoding="utf-8")
    return "save(" in source or "savefig(" in source


def make_small(path: Path) -> None:
    """Store a picture with a palette of 256 colours, which takes about a third of the space."""
    from PIL import Image

    with Image.open(path) as drawn:
        few = drawn.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main(chosen: list[str]) -> None:
    """Draw all pictures, or those that were named."""
    for name in chosen or [name for names in SECTIONS.values() for name in names]:
        script = ROOT / "examples" / f"{name}.py"
        target = [str(picture(name))] if draws(script) else []
        subprocess.run([sys.executable, str(script), *target], check=True)
        if target:
            make_small(picture(name))


if __name__ == "__main__":
    main(sys.argv[1:])
