"""Everything public says what it is; each function names its arguments, its errors and where its model is described."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import headway

PUBLIC = [(name, getattr(headway, name)) for name in headway.__all__ if not name.startswith("__")]
FUNCTIONS = [(name, it) for name, it in PUBLIC if inspect.isfunction(it)]
CLASSES = [(name, it) for name, it in PUBLIC if inspect.isclass(it)]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_a_function_documents_its_arguments_and_errors(name: str, function: Any) -> None:
    doc = inspect.getdoc(function) or ""
    assert [param for param in inspect.signature(function).parameters if f":param {param}:" not in doc] == []
    if name != "experiments":
        assert ":raises HeadwayError:" in doc


@pytest.mark.parametrize("name", ["simulate", "workload", "plan", "fit", "tune", "check_policy", "policies"])
def test_a_function_names_where_its_model_is_described(name: str) -> None:
    doc = inspect.getdoc(getattr(headway, name)) or ""
    assert "docs/" in doc or "crates/" in doc


@pytest.mark.parametrize(("name", "cls"), CLASSES, ids=[name for name, _ in CLASSES])
def test_a_class_and_its_methods_say_what_they_are(name: str, cls: Any) -> None:
    assert cls.__doc__, name
    own = {key: it for key, it in vars(cls).items() if not key.startswith("_") and (callable(it) or isinstance(it, property))}
    assert [key for key, it in own.items() if not inspect.getdoc(it)] == []


def test_every_setting_of_a_system_is_in_its_table() -> None:
    doc = headway.SystemSettings.__doc__ or ""
    assert [name for name in headway.SystemSettings.__annotations__ if f"``{name}``" not in doc] == []
