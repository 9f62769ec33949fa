"""Names that went say what replaces them, for one version."""

from importlib import import_module

import pytest

from maxmargin.errors import REMOVED


@pytest.mark.parametrize("name", REMOVED)
@pytest.mark.all_cases
def test_a_removed_name_says_what_replaces_it(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    with pytest.raises(AttributeError, match=attribute) as raised:
        getattr(import_module(module), attribute)
    assert str(raised.value).endswith(REMOVED[name])


@pytest.mark.parametrize("name", REMOVED)
@pytest.mark.all_cases
def test_the_replacement_exists(name: str) -> None:
    place, _, attribute = REMOVED[name].partition(" ")[0].partition("(")[0].rpartition(".")
    if place.startswith(("maxmargin", "sklearn")):
        assert hasattr(import_module(place), attribute)
