"""The loader: every fault at once, each with its path."""

from dataclasses import dataclass
from typing import Literal

import pytest

from hwmodels.errors import Fault, SpecError
from hwmodels.loading import read_document, structure, unstructure
from hwmodels.units import Bytes, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    size: Bytes
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    inner: Inner
    mode: Literal["fast", "slow"] = "fast"
    parts: tuple[Inner, ...] = ()
    waits: dict[str, Seconds]


GOOD = {"inner": {"size": "80 GB"}, "parts": [{"size": "1 kB", "count": 2}], "waits": {"a": "5 us"}}


def faults_of(data):
    with pytest.raises(SpecError) as caught:
        structure(data, Outer)
    return {fault.path: fault for fault in caught.value.faults}


def test_records_round_trip():
    record = structure(GOOD, Outer)
    assert record.inner.size == 80e9 and record.parts[0].count == 2 and record.waits == {"a": 5e-6}
    assert structure(unstructure(record), Outer) == record


def test_every_fault_is_reported_with_its_path():
    faults = faults_of(
        {
            "inner": {"size": 80, "cuont": 3},
            "mode": "fats",
            "parts": [{"size": "1 kB"}, {"size": "1 kBB", "count": "2"}],
            "waits": {"a": "5 us", "b": "5 uss"},
        }
    )
    assert set(faults) == {"inner.size", "inner.cuont", "mode", "parts[1].size", "parts[1].count", "waits.b"}
    assert faults["inner.size"].nearest == "80 GB"
    assert faults["inner.cuont"].nearest == "count"
    assert faults["mode"].nearest == "fast"


@pytest.mark.parametrize("data", [None, 3, "text", [], [GOOD]])
def test_what_is_no_mapping_is_refused(data):
    assert "a mapping with the keys" in faults_of(data)[""].legal


def test_missing_keys_are_named():
    assert set(faults_of({})) == {"inner", "waits"}


@pytest.mark.parametrize(("value", "legal"), [(2.5, "whole"), (True, "whole"), ("2", "whole"), (None, "whole")])
def test_numbers_are_not_coerced(value, legal):
    faults = faults_of({**GOOD, "inner": {"size": "1 GB", "count": value}})
    assert legal in faults["inner.count"].legal


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("twice.yaml", "a: 1\na: 2\n", "appears twice"),
        ("open.yaml", "a: [1, 2\n", "line"),
        ("open.json", '{"a": 1', "complete JSON"),
        ("tab.yaml", "a:\n\t- 1\n", "line 2"),
        ("tag.yaml", "a: !!python/object/apply:os.system ['true']\n", "line 1"),
    ],
)
def test_broken_files_are_named_with_the_place(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SpecError, match=words) as caught:
        read_document(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "job.yaml").write_text("a: 1\n")
    with pytest.raises(SpecError) as caught:
        read_document(tmp_path / "jbo.yaml")
    assert caught.value.faults[0].nearest == str(tmp_path / "job.yaml")


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(SpecError, match="UTF-8"):
        read_document(path)


def test_paths_nest():
    fault = Fault(path="[1].size", found="3", legal="4")
    assert fault.under("parts").path == "parts[1].size"
    assert Fault(path="size", found="3", legal="4").under("inner").path == "inner.size"
    assert Fault(path="", found="3", legal="4").under("inner").path == "inner"
