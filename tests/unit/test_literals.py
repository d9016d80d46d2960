"""Conditions that look for a word first against plain searches."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsysmodel.join.literals import literals_of
from nsysmodel.join.matching import _CONDITIONS, Subject, _Condition, words_of
from nsysmodel.join.names import normalise
from nsysmodel.join.vocabulary import _bundled

FILES, _ = _bundled()
SOURCES = sorted(
    {
        getattr(rule, field)
        for file in FILES
        for rule in (*file.rules, *file.traits)
        for field, _, _ in _CONDITIONS
        if getattr(rule, field)
    }
)
PIECES = st.sampled_from(
    ["abc", "de_f", "x", "(ab|cd)", "(efg)?", "h*", r"\w*", "[ij]", ".", "k+", "lmn?", r"\."]
)
EXPRESSIONS = st.lists(st.lists(PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=3).map(
    "|".join
)


@pytest.mark.parametrize("source", SOURCES)
def test_bundled_expressions_are_ones(source: str) -> None:
    re.compile(source)


def test_most_bundled_expressions_have_literals() -> None:
    assert sum(bool(literals_of(source)) for source in SOURCES) > 0.6 * len(SOURCES)


@settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data(), EXPRESSIONS, st.booleans())
def test_what_an_expression_is_found_in_holds_a_literal(
    data: st.DataObject, source: str, group: bool
) -> None:
    source = f"^({source})" if group else source
    literals = literals_of(source)
    if literals:
        text = data.draw(st.from_regex(source))
        assert any(literal in text for literal in literals), (source, text)


@pytest.mark.parametrize(
    "source",
    ["abc[(]d|xyz", "[|]abc|d", "abc[)]|e", "(?i)abcd", "(?P<n>abc)", "abc{0,3}d", "[^]abc]", r"[\]|]abc"],
)
def test_what_is_not_understood_has_none(source: str) -> None:
    assert literals_of(source) == ()


def test_real_names_fit_as_with_plain_searches() -> None:
    with (Path(__file__).parent / "kernel_names.csv").open(encoding="utf-8", newline="") as stream:
        names = [row[0] for row in csv.reader(stream)][::5]
    subjects = []
    for name in names:
        known = normalise(name)
        subjects.append(
            Subject(known.base, known.namespace, words_of(known.base), known.template, known.text)
        )
    for source in SOURCES:
        pattern = re.compile(source)
        for place in range(len(Subject._fields)):
            # A fresh condition for each text: once compiled, it no longer looks for words.
            for text in {subject[place] for subject in subjects}:
                found = _Condition(place, source, source, True).search(text)
                assert (found is None) == (pattern.search(text) is None), (source, text)
