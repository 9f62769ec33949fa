"""Numbers whose digits follow a grammar: who reads them as a chain sees what single digits hide."""

import os
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.datasets import Grammar

FOLDER = os.environ.get("MAXMARGIN_DATA", "")
CHAIN = mm.structured.Chain(n_states=10)
LEARNERS: dict[str, Any] = {
    "svm": mm.StructuredSVC(CHAIN, C=0.3, tol=0.01),
    "averaged": mm.StructuredPerceptron(CHAIN, max_epochs=20),
    "margin": mm.StructuredPerceptron(CHAIN, max_epochs=20, margin=1.0),
}


class Numbers(NamedTuple):
    grammar: Grammar
    X: list[Floats]
    y: list[Any]
    X_test: list[Floats]
    y_test: list[Any]
    single: float  # how many digits a linear SVM reads that sees one at a time
    informed: float  # and if single digits are scored, but the grammar is known


@cache
def images(strength: float) -> Numbers:
    """Numbers of scikit-learn's digits; those to test on share no image with those to learn."""
    grammar = mm.datasets.digit_grammar(strength, random_state=4)
    X, y = mm.datasets.numbers(300, grammar, noise=30, rows=slice(1200))
    X_test, y_test = mm.datasets.numbers(
        400, grammar, noise=30, rows=slice(1200, None), random_state=1
    )
    return measured(grammar, [x / 16 for x in X], y, [x / 16 for x in X_test], y_test)


def viterbi(scores: Floats, transitions: Floats, start: Floats) -> list[int]:
    """Return the best path through scores of shape (length, states)."""
    total, back = scores[0] + start, []
    for here in scores[1:]:
        reached = total[:, np.newaxis] + transitions
        back.append(reached.argmax(axis=0))
        total = reached.max(axis=0) + here
    path = [int(total.argmax())]
    for best in reversed(back):
        path.append(int(best[path[-1]]))
    return path[::-1]


def accuracy(found: Any, truth: Any) -> float:
    return float((np.concatenate(list(found)) == np.concatenate(truth)).mean())


def measured(grammar: Grammar, X: Any, y: Any, X_test: Any, y_test: Any) -> Numbers:
    rows, digits = np.concatenate(X), np.concatenate(y)
    svm = mm.LinearSVC(multi_class="crammer_singer").fit(rows, digits)
    logistic = LogisticRegression(C=10, max_iter=1000).fit(rows, digits)
    truth = np.log(grammar.transitions), np.log(grammar.start)
    informed = [viterbi(logistic.predict_log_proba(x), *truth) for x in X_test]
    single = [svm.predict(x) for x in X_test]
    return Numbers(
        grammar, X, y, X_test, y_test, accuracy(single, y_test), accuracy(informed, y_test)
    )


@pytest.mark.wide
@pytest.mark.parametrize("name", LEARNERS)
def test_a_chain_reads_what_single_digits_hide(name: str) -> None:
    data = images(0.9)
    model = LEARNERS[name].fit(data.X, data.y)
    found = accuracy(model.predict(data.X_test), data.y_test)
    assert found == pytest.approx(model.score(data.X_test, data.y_test))
    assert found > data.single + 0.05
    assert found > data.informed - 0.02
    # What it learnt of the grammar is the grammar.
    weights = model.model_.named_weights(model.coef_)
    favoured = data.grammar.transitions > 0.1
    assert roc_auc_score(favoured.ravel(), weights["transitions"].ravel()) > 0.97


@pytest.mark.parametrize("name", LEARNERS)
def test_without_a_grammar_a_chain_has_nothing_to_gain(name: str) -> None:
    data = images(0.0)
    found = LEARNERS[name].fit(data.X, data.y).score(data.X_test, data.y_test)
    assert abs(found - data.single) < 0.04
