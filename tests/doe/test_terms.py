import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doe.errors import DoeError
from doe.terms import order, parse_term, term_name, terms_up_to


def test_names_of_one_letter_keys_are_joined_and_of_words_separated():
    assert term_name(0b101, "ABC") == "AC"
    assert term_name(0b101, ["lr", "aug", "opt"]) == "lr:opt"
    assert term_name(0, "ABC") == "I"


@settings(deadline=None)
@given(st.integers(1, 63))
def test_parsing_reverses_naming(mask):
    assert parse_term(term_name(mask, "ABCDEF"), "ABCDEF") == mask
    words = ["lr", "aug", "opt", "wd", "bs", "ema"]
    assert parse_term(term_name(mask, words), words) == mask


@pytest.mark.parametrize(("text", "said"), [("AX", "'X'"), ("AA", "twice"), ("", "empty")])
def test_a_bad_term_is_named(text, said):
    with pytest.raises(DoeError, match=said):
        parse_term(text, "ABC")


def test_terms_come_in_standard_order_and_stop_at_the_order_asked_for():
    assert [term_name(m, "ABC") for m in terms_up_to(3)] == ["A", "B", "AB", "C", "AC", "BC", "ABC"]
    assert all(order(m) <= 2 for m in terms_up_to(6, 2))
    assert len(terms_up_to(6, 2)) == 6 + 15
