"""The typed stub is the compiled part: the same names, and the same parameters."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

from headway import _native

STUB = ast.parse(Path(_native.__file__).with_name("_native.pyi").read_text())


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def parameters(function: ast.FunctionDef) -> list[str]:
    is_static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
    return [one.arg for one in function.args.args if is_static or one.arg != "self"]


def test_each_function_has_its_parameters() -> None:
    stubs = {node.name: parameters(node) for node in STUB.body if isinstance(node, ast.FunctionDef)}
    functions = {name: it for name in public(vars(_native)) if inspect.isbuiltin(it := getattr(_native, name))}
    assert stubs == {name: list(inspect.signature(it).parameters) for name, it in functions.items()}


def test_each_class_has_its_methods() -> None:
    stubs = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    classes = {name: it for name in public(vars(_native)) if inspect.isclass(it := getattr(_native, name))}
    # Those with an underscore are what the functions take: any class of that shape.
    assert public(stubs) == set(classes)
    for name, cls in classes.items():
        methods = {node.name: node for node in stubs[name].body if isinstance(node, ast.FunctionDef)}
        own = {key: getattr(cls, key) for key in public(vars(cls))}
        assert public(methods) == set(own), name
        for key, it in own.items():
            is_property = any(isinstance(each, ast.Name) and each.id == "property" for each in methods[key].decorator_list)
            assert is_property == inspect.isdatadescriptor(it), (name, key)
            if not is_property:
                assert parameters(methods[key]) == [one for one in inspect.signature(it).parameters if one != "self"], (name, key)
