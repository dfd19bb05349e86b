"""Quantities in and out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.units import UnitError, exact, parse, show

UNITS = ["B", "B/s", "s", "FLOP", "FLOP/s", "W", "J", "USD", "USD/h", "USD/kWh", "fraction", "count"]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80 GB", "B", 80e9),
        ("80 GiB", "B", 80 * 2**30),
        ("400 Gb/s", "B/s", 50e9),
        ("3.35TB/s", "B/s", 3.35e12),
        ("5 us", "s", 5e-6),
        ("30 d", "s", 2_592_000),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("10.2 kW", "W", 10_200),
        ("2M USD", "USD", 2e6),
        ("1,250 USD", "USD", 1250),
        ("2.10 USD/h", "USD/h", 2.10),
        ("80%", "fraction", 0.8),
        (0.8, "fraction", 0.8),
        ("1T", "count", 1e12),
        ("15T tokens", "count", 15e12),
        (2_000_000, "count", 2e6),
    ],
)
def test_parse(text, unit, value):
    assert parse(text, unit) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit", "nearest"),
    [
        ("80 Gbb", "B", "80 GB"),
        ("80", "B", "80 GB"),
        (80, "B", "80 GB"),
        ("5 sec", "s", None),
        ("two GB", "B", None),
        (True, "B", None),
        ("-3 GB", "B", None),
        ("1e999 GB", "B", None),
    ],
)
def test_what_is_not_a_quantity_is_refused(text, unit, nearest):
    with pytest.raises(UnitError) as caught:
        parse(text, unit)
    assert nearest is None or caught.value.nearest == nearest


@given(value=st.floats(0, 1e30), unit=st.sampled_from(UNITS))
def test_exact_text_reads_back_to_the_same_float(value, unit):
    assert parse(exact(value, unit), unit) == value


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (80e9, "B", "80 GB"),
        (0.0, "B", "0 B"),
        (3.217, "s", "3.22 s"),
        (0.00042, "s", "420 us"),
        (1.5e13, "count", "15T"),
        (989e12, "FLOP/s", "989 TFLOP/s"),
        (2e6, "USD", "2M USD"),
        (345.2, "USD", "345 USD"),
        (0.4321, "fraction", "43.2%"),
        (2.1, "USD/h", "2.10 USD/h"),
    ],
)
def test_show(value, unit, text):
    assert show(value, unit) == text


@given(value=st.floats(1e-9, 1e18), unit=st.sampled_from([u for u in UNITS if u not in ("USD/h", "USD/kWh")]))
def test_shown_text_is_close_to_the_value(value, unit):
    assert parse(show(value, unit, digits=6), unit) == pytest.approx(value, rel=1e-5)
