"""What the functions of expressions are called, take and do: for completion in the builder.

One line per function: `on` is the kind of value before the point (`text list map time length optional`), or empty for
those that are called by themselves. Each has an example, which a test evaluates.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Help:
    name: str
    takes: str
    about: str
    example: str
    on: str = ""

    @property
    def signature(self) -> str:
        return f"{self.on + '.' if self.on else ''}{self.name}({self.takes})"


TEXT = (
    ("contains", "text", "Whether the text holds another.", '"Halden Robotics".contains("Rob")'),
    ("startsWith", "text", "Whether it begins so.", '"INV-17".startsWith("INV")'),
    ("endsWith", "text", "Whether it ends so.", '"a@b.example".endsWith(".example")'),
    ("matches", "pattern", "Whether a regular expression is found in it.", '"INV-17".matches("^INV-[0-9]+$")'),
    ("lower", "", "In small letters, in every alphabet.", '"ÄPFEL".lower()'),
    ("upper", "", "In capital letters, in every alphabet.", '"äpfel".upper()'),
    ("lowerAscii", "", "Only A to Z in small letters.", '"ABC".lowerAscii()'),
    ("upperAscii", "", "Only a to z in capital letters.", '"abc".upperAscii()'),
    ("trim", "", "Without spaces at both ends.", '"  a b ".trim()'),
    ("replace", "old, new, at most", "With every “old” replaced, or the first few.", '"a-b-c".replace("-", " ")'),
    ("split", "separator, at most", "A list of its parts.", '"a,b".split(",")'),
    ("substring", "from, to", "A part of it; places count from 0.", '"Holdfast".substring(0, 4)'),
    ("charAt", "place", "One letter; places count from 0.", '"abc".charAt(1)'),
    ("indexOf", "text, from", "Where another text begins, or -1.", '"abc".indexOf("c")'),
    ("lastIndexOf", "text, from", "Where it begins for the last time, or -1.", '"abca".lastIndexOf("a")'),
    ("format", "list", "With %s, %d, %.2f filled in from a list.", '"%.2f EUR".format([3.5])'),
    ("reverse", "", "From its end to its beginning.", '"abc".reverse()'),
    ("size", "", "How many letters.", '"abc".size()'),
)
LISTS = (
    ("size", "", "How many items.", "[1, 2].size()"),
    ("first", "", "The first item.", "[1, 2].first()"),
    ("last", "", "The last item.", "[1, 2].last()"),
    ("map", "item, value", "A list of what each item gives.", "[1, 2].map(n, n * 10)"),
    ("filter", "item, condition", "Only the items for which it is true.", "[1, 2].filter(n, n > 1)"),
    ("exists", "item, condition", "Whether it is true for any item.", "[1, 2].exists(n, n > 1)"),
    ("exists_one", "item, condition", "Whether it is true for exactly one item.", "[1, 2].exists_one(n, n > 1)"),
    ("all", "item, condition", "Whether it is true for every item.", "[1, 2].all(n, n > 0)"),
    ("join", "separator", "One text of a list of texts.", '["a", "b"].join(", ")'),
    ("sum", "", "The sum of a list of numbers.", "[1, 2].sum()"),
    ("average", "", "The sum of a list of numbers by their count.", "[1, 2].average()"),
    ("min", "", "The smallest item.", "[1, 2].min()"),
    ("max", "", "The largest item.", "[1, 2].max()"),
    ("sort", "", "From small to large.", "[2, 1].sort()"),
    ("sortBy", "item, value", "From small to large by what each item gives.", '[{"n": 2}, {"n": 1}].sortBy(x, x.n)'),
    ("groupBy", "item, value", "A list of items for each value that they give.", '[{"n": 2}, {"n": 1}].groupBy(x, string(x.n))'),
    ("reverse", "", "From its end to its beginning.", "[1, 2].reverse()"),
    ("distinct", "", "Every item once.", "[1, 1, 2].distinct()"),
    ("slice", "from, to", "A part of it; places count from 0.", "[1, 2, 3].slice(0, 2)"),
    ("flatten", "depth", "Lists inside it become one.", "[[1], [2]].flatten()"),
)
MAPS = (
    ("keys", "", "The names of its fields.", '{"a": 1}.keys()'),
    ("values", "", "The values of its fields.", '{"a": 1}.values()'),
    ("merge", "group", "With the fields of another, which win.", '{"a": 1}.merge({"b": 2})'),
    ("size", "", "How many fields.", '{"a": 1}.size()'),
)
OPTIONALS = (
    ("orValue", "value", "The value, or this one when it is not there.", '{"a": 1}.?b.orValue("none")'),
    ("hasValue", "", "Whether it is there.", '{"a": 1}.?b.hasValue()'),
    ("or", "another", "The first of two that is there.", '{"a": 1}.?b.or({"a": 1}.?a).orValue(0)'),
    ("value", "", "The value; an error when it is not there.", '{"a": 1}.?a.value()'),
    ("optMap", "name, value", "Something made of it, if it is there.", '{"a": 1}.?a.optMap(n, n + 1).orValue(0)'),
    (
        "optFlatMap",
        "name, value",
        "The same, where that may be missing too.",
        '{"a": {"b": 1}}.?a.optFlatMap(n, n.?b).orValue(0)',
    ),
)
_ZONED = 'timestamp("2027-01-15T09:00:00Z").{}("Europe/Berlin")'
TIMES = (
    (
        "format",
        "pattern, zone",
        "As people write it: yyyy, MM or MMMM, d or dd, EEEE, HH, mm.",
        'timestamp("2027-01-15T09:00:00Z").format("EEEE, d MMMM yyyy, HH:mm", "Europe/Berlin")',
    ),
    *(
        (name, "zone", about, _ZONED.format(name))
        for name, about in (
            ("getFullYear", "The year."),
            ("getMonth", "The month, from 0."),
            ("getDate", "The day of the month, from 1."),
            ("getDayOfMonth", "The day of the month, from 0."),
            ("getDayOfWeek", "The day of the week; 0 is Sunday."),
            ("getDayOfYear", "The day of the year, from 0."),
            ("getHours", "The hour, 0 to 23."),
            ("getMinutes", "The minute."),
            ("getSeconds", "The second."),
            ("getMilliseconds", "The millisecond."),
        )
    ),
)
BY_THEMSELVES = (
    ("has", "field", "Whether a field is there.", 'has({"a": 1}.a)'),
    ("size", "value", "How many letters, items or fields.", 'size("abc")'),
    ("string", "value", "As text.", "string(12)"),
    ("int", "value", "As a whole number, cut towards zero.", 'int("12")'),
    ("double", "value", "As a number with a point.", 'double("1.5")'),
    ("bool", "value", "As true or false.", 'bool("true")'),
    ("uint", "value", "As a whole number without a sign.", "uint(12)"),
    ("bytes", "text", "The bytes of a text in UTF-8.", 'size(bytes("abc"))'),
    ("timestamp", "text, zone", "A moment in time; with a zone, of what its clocks show.", 'timestamp("2027-01-15T09:00", "Europe/Berlin")'),
    ("duration", "text", "A length of time: 30s, 5m, 2h, 3d.", 'duration("3d")'),
    ("json", "text", "The value that a JSON text holds.", """json('{"a": 1}')"""),
    ("json_text", "value", "A value as JSON text.", 'json_text({"a": 1})'),
    ("range", "count", "The list 0, 1, … up to count - 1.", "range(3)"),
    ("matches", "text, pattern", "Whether a regular expression is found.", 'matches("INV-17", "[0-9]+")'),
    ("type", "value", "What kind of value it is.", "type(1) == int"),
    ("dyn", "value", "The value, with its kind left open.", "dyn(1)"),
    ("math.round", "number, digits", "Rounded, halves away from zero.", "math.round(2.675, 2)"),
    ("math.floor", "number", "The whole number below.", "math.floor(2.5)"),
    ("math.ceil", "number", "The whole number above.", "math.ceil(2.5)"),
    ("math.trunc", "number", "Without what is after the point.", "math.trunc(-2.5)"),
    ("math.abs", "number", "Without its sign.", "math.abs(-2)"),
    ("math.sign", "number", "-1, 0 or 1.", "math.sign(-2)"),
    ("math.greatest", "numbers", "The largest of several.", "math.greatest(1, 3, 2)"),
    ("math.least", "numbers", "The smallest of several.", "math.least(1, 3, 2)"),
    ("math.isNaN", "number", "Whether it is no number.", "math.isNaN(1.0)"),
    ("math.isInf", "number", "Whether it is without bound.", "math.isInf(1.0)"),
    ("math.isFinite", "number", "Whether it is an ordinary number.", "math.isFinite(1.0)"),
    ("strings.quote", "text", "In quotes, with its own escaped.", """strings.quote('say "hi"')"""),
    ("base64.encode", "bytes", "Bytes as base64 text.", 'base64.encode(bytes("abc"))'),
    ("base64.decode", "text", "The bytes of a base64 text.", 'string(base64.decode("YWJj"))'),
    ("optional.of", "value", "A value that may be missing, and is there.", "optional.of(1).orValue(0)"),
    ("optional.none", "", "A value that is missing.", "optional.none().orValue(0)"),
    ("optional.ofNonZeroValue", "value", "Missing when empty or 0.", 'optional.ofNonZeroValue("").orValue("-")'),
)


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    functions: tuple[Help, ...]


TITLES = {"list": "Lists", "text": "Texts", "time": "Dates and times", "map": "Groups of fields", "": "Of all kinds", "optional": "What may be missing"}


@cache
def groups() -> tuple[Group, ...]:
    """By what they are about, for the help page."""
    return tuple(Group(title, tuple(one for one in functions() if one.on == on)) for on, title in TITLES.items())


@cache
def functions() -> tuple[Help, ...]:
    """All of them; those that are called by themselves come first."""
    tables = {"": BY_THEMSELVES, "text": TEXT, "list": LISTS, "map": MAPS, "optional": OPTIONALS, "time": TIMES}
    return tuple(Help(*line, on=on) for on, table in tables.items() for line in table)


def as_json() -> list[dict[str, Any]]:
    return [{**asdict(one), "signature": one.signature} for one in functions()]
