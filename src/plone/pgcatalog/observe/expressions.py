"""Query objects in the log: their shape, and their JSON form."""

from collections.abc import Mapping
from dataclasses import fields
from plone.pgcatalog.indexing.codec import CodecError
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.query import objects
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.objects import Compound
from plone.pgcatalog.query.objects import DictQuery
from plone.pgcatalog.query.objects import Leaf
from plone.pgcatalog.query.objects import Not
from typing import Any


JOINED: dict[str, type[Compound]] = {"And": objects.And, "Or": objects.Or}
LEAVES: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (objects.Eq, objects.In, objects.Range, objects.Text, objects.Path)
}


def shape_of_expression(expression: Expression) -> str:
    """Return *expression* without its values."""
    name = type(expression).__name__
    if isinstance(expression, Compound):
        return f"{name}({', '.join(map(shape_of_expression, expression.parts))})"
    if isinstance(expression, Not):
        return f"{name}({shape_of_expression(expression.part)})"
    return f"{name} {' '.join(sorted(expression.names()))}"


def dump_expression(expression: Expression) -> dict[str, Any]:
    """Return *expression* as JSON data.  Raises CodecError when that is not possible."""
    name = type(expression).__name__
    if isinstance(expression, Compound) and name in JOINED:
        return {name: [dump_expression(part) for part in expression.parts]}
    if isinstance(expression, Not):
        return {name: dump_expression(expression.part)}
    if isinstance(expression, DictQuery):
        return {name: {key: encode(value) for key, value in expression.query.items()}}
    if isinstance(expression, Leaf) and name in LEAVES:
        values = {field.name: getattr(expression, field.name) for field in fields(LEAVES[name])}
        return {name: {key: encode(value) for key, value in values.items()}}
    raise CodecError(f"no JSON form for query objects of type {name}")


def load_expression(data: Mapping[str, Any]) -> Expression:
    """Return what ``dump_expression`` made *data* of.  Raises CodecError for anything else."""
    try:
        [(name, content)] = data.items()
        if name in JOINED:
            return JOINED[name](*map(load_expression, content))
        if name == Not.__name__:
            return Not(load_expression(content))
        values = {key: decode(value) for key, value in content.items()}
        if name == DictQuery.__name__:
            return DictQuery(values)
        expression: Expression = LEAVES[name](**values)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CodecError(f"no query object: {error}") from error
    return expression
