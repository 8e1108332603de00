"""The panel's forms: every field of every type can be filled in without JSON, and what is shown reads back as it was."""

from __future__ import annotations

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string

from builder.forms.base import FieldError, Offer
from builder.forms.safety import latest_times, read_safety, safety_of, strip, worst_case
from builder.forms.setup import read, setup_fields, show, spec_for, specs_of, value_at
from builder.forms.widgets import WIDGETS
from runtime.backoff import RetryPolicy
from runtime.steps import step_types
from runtime.triggers import trigger_kinds
from runtime.workdays import calendars, check_calendar, parts

KINDS = {**step_types(), **trigger_kinds()}
FULL = {
    "ai": {"task": "extract", "prompt": "Score {{ trigger.body }}", "schema": {"type": "object", "properties": {"score": {"type": "integer", "description": "0 to 100"}, "why": {"type": "string", "enum": ["a", "b"]}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["score"], "additionalProperties": False}, "temperature": 0.5, "max_tokens": 200},
    "http": {"method": "POST", "url": "https://a.example/{{ trigger.body.id }}", "query": {"q": "1"}, "headers": {"X-A": "b"}, "json": {"name": "{{ trigger.body.name }}", "n": 1, "zip": "01234", "tags": ["a", {"deep": None}]}, "success": "2xx, 404", "idempotency_header": ""},
    "email": {"to": ["{{ trigger.body.email }}", "b@example.com"], "subject": "Hi", "body": "Line\nline"},
    "delay": {"for": "2d"},
    "approval": {"approvers": ["a@example.com"], "policy": "all", "expires": "1d 12h", "subject": "Ok?", "details": {"Who": "{{ trigger.body.who }}"}, "form": [{"id": "amount", "label": "Amount", "type": "choice", "required": True, "options": ["1", "2"]}], "effects": {"approve": "It is paid."}},
    "loop": {"items": "trigger.body.items", "concurrency": 5, "collect": "loop.item.id"},
    "set": {"values": {"b": "{{ 1 + 1 }}", "a": {"x": [1, 2]}}},
    "stop": {"outcome": "failed", "message": "No", "output": {"a": 1}},
    "webhook": {"dedupe": "headers['x-event-id']", "signature": {"kind": "github"}, "sample": {"a": [1]}},
    "schedule": {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"},
    "manual": {"fields": [{"id": "who", "label": "Who", "type": "text", "required": True}]},
}


def post(**values) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in values.items():
        data.setlist(name, value if isinstance(value, list) else [value])
    return data


def typed(shown) -> QueryDict:
    """What a browser would send for a field as it is shown, read from the HTML that it gets."""
    from html.parser import HTMLParser

    class Controls(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found, self.template, self.area, self.select = [], 0, None, None

        def handle_starttag(self, tag, attributes):
            a = dict(attributes)
            self.template += tag == "template"
            if self.template:
                return
            if tag == "input" and "name" in a and (a.get("type") not in ("checkbox", "radio") or "checked" in a):
                self.found.append((a["name"], a.get("value", "")))
            if tag == "textarea" and "name" in a:
                self.area = [a["name"], ""]
            if tag == "select":
                self.select = [a["name"], None]
            if tag == "option" and self.select and ("selected" in a or self.select[1] is None):
                self.select[1] = a.get("value", "")

        def handle_endtag(self, tag):
            self.template -= tag == "template"
            if tag == "textarea" and self.area:
                self.found.append(tuple(self.area))
                self.area = None
            if tag == "select" and self.select:
                self.found.append((self.select[0], self.select[1] or ""))
                self.select = None

        def handle_data(self, data):
            if self.area:
                self.area[1] += data

    parser = Controls()
    parser.feed(render_to_string("canvas/field.html", {"field": shown}))
    data = QueryDict(mutable=True)
    for name, value in parser.found:
        data.appendlist(name, value)
    return data


@pytest.mark.parametrize("type_", sorted(KINDS))
def test_every_field_of_every_type_has_a_widget_of_its_own(type_):
    for name, spec in specs_of(KINDS[type_].Config):
        assert spec.kind in WIDGETS, f"{type_}.{name} would have to be typed as JSON"


@pytest.mark.parametrize("type_", sorted(FULL))
def test_a_field_that_is_sent_back_as_it_was_shown_keeps_its_value(type_):
    config, model = FULL[type_], KINDS[type_].Config
    model.model_validate(config)
    for shown in setup_fields(type_, model, config, Offer()):
        name = shown.name.removeprefix("config.")
        value, spec = value_at(config, name), spec_for(model, shown.name)
        back = read(model, shown.name, typed(shown))
        assert back == (spec.default if value is None and back is not None else value), shown.name


def test_a_new_step_shows_what_it_needs_and_hides_what_its_choices_make_pointless():
    names = [shown.name for shown in setup_fields("ai", KINDS["ai"].Config, {"task": "classify"}, Offer())]
    assert "config.labels" in names and "config.schema" not in names
    names = [shown.name for shown in setup_fields("loop", KINDS["loop"].Config, {"while": "true"}, Offer())]
    assert "config.while" in names and "config.items" not in names and "config.concurrency" not in names


@pytest.mark.parametrize(("pages", "asked"), [
    ("none", ["pages"]),
    ("next_link", ["pages", "page_items", "page_next", "most_pages"]),
    ("cursor", ["pages", "page_items", "page_next", "page_param", "most_pages"]),
    ("page", ["pages", "page_items", "page_param", "most_pages"]),
    ("offset", ["pages", "page_items", "page_param", "most_pages"]),
])  # fmt: skip
def test_following_pages_asks_for_what_its_way_uses_and_each_field_says_what_it_sees(pages, asked):
    shown = {one.name.removeprefix("config."): one for one in setup_fields("http", KINDS["http"].Config, {"pages": pages}, Offer())}
    found = [name for name in shown if name.startswith("page") or name == "most_pages"]
    assert found == asked, "together and in this order"
    assert all(shown[name].more == (pages == "none") for name in asked), "none is hidden away from the others"
    for name in {"page_items", "page_next"} & shown.keys():
        assert "sees response" in shown[name].help and shown[name].example.startswith("response.body.") and shown[name].example in shown[name].help
    if "page_param" in shown:
        assert shown["page_param"].example == pages and f"?{pages}=" in shown["page_param"].help
    if "most_pages" in shown:
        assert "more: true" in shown["most_pages"].help


@pytest.mark.parametrize(
    ("type_", "field", "data", "expected"),
    [
        ("delay", "config.for", {"number": "90", "unit": "m"}, "90m"),
        ("delay", "config.for", {"number": "1d 12h", "unit": "m"}, "1d 12h"),
        ("delay", "config.for", {"number": "{{ trigger.body.wait }}", "unit": "m"}, "{{ trigger.body.wait }}"),
        ("http", "config.json", {"mode": "rows", "depth": ["0", "0", "1"], "key": ["a", "b", "c"], "kind": ["value", "group", "value"], "value": ["42", "", "x"]}, {"a": 42, "b": {"c": "x"}}),
        ("http", "config.json", {"mode": "json", "text": '[1, {"a": null}]'}, [1, {"a": None}]),
        ("http", "config.json", {"mode": "rows"}, None),
        ("http", "config.headers", {"key": ["X-A", ""], "value": ["1", ""]}, {"X-A": "1"}),
        ("http", "config.idempotency_header", {"value": ""}, ""),
        ("email", "config.to", {"value": ["a@b.example", " ", "{{ trigger.body.x }}"]}, ["a@b.example", "{{ trigger.body.x }}"]),
        ("loop", "config.items", {"value": "{{ trigger.body.items }}"}, "trigger.body.items"),
        ("loop", "config.concurrency", {"value": "7"}, 7),
        ("condition", "branches.0.when", {"mode": "rules", "match": "any", "group": ["0", "0"], "left": ["{{ trigger.body.a }}", "trigger.body.b"], "comparison": [">", "true"], "right": ["70", ""]}, "trigger.body.a > 70 || trigger.body.b"),
        ("condition", "branches.0.when", {"mode": "expression", "expression": "trigger.body.a in [1]"}, "trigger.body.a in [1]"),
        ("manual", "config.fields", {"id": ["", ""], "label": ["Your name", "Your name"], "type": ["text", "date"], "required": ["yes", "no"], "options": ["", ""]}, [{"id": "your_name", "label": "Your name", "type": "text", "required": True}, {"id": "your_name_2", "label": "Your name", "type": "date", "required": False}]),
    ],
)
def test_what_is_typed_becomes_a_value(type_, field, data, expected):
    assert read(KINDS[type_].Config, field, post(**data)) == expected


@pytest.mark.parametrize(
    ("type_", "field", "data", "words", "row"),
    [
        ("delay", "config.for", {"number": "soon", "unit": "m"}, "is not a duration", None),
        ("http", "config.json", {"mode": "json", "text": '{"a": 1,}'}, "ine 1, column", None),
        ("http", "config.json", {"mode": "json", "text": "[1e999]"}, "finite", None),
        ("http", "config.json", {"mode": "rows", "depth": ["0", "0"], "key": ["a", ""], "kind": ["value", "value"], "value": ["1", "2"]}, "a name", 1),
        ("http", "config.headers", {"key": ["A", "A"], "value": ["1", "2"]}, "there twice", 1),
        ("loop", "config.concurrency", {"value": "1000"}, "At most 100", None),
        ("loop", "config.concurrency", {"value": "many"}, "whole number", None),
        ("loop", "config.items", {"value": "trigger.body."}, ".", None),
        ("http", "config.method", {"value": "BREW"}, "one of the options", None),
        ("ai", "config.schema", {"mode": "rows", "name": ["a", "a"], "type": ["string", "string"], "required": ["yes", "yes"], "description": ["", ""], "options": ["", ""]}, "there twice", 1),
        ("condition", "branches.0.when", {"mode": "rules", "match": "all", "group": ["0", "0"], "left": ["trigger.a", ""], "comparison": ["==", ">"], "right": ["1", "2"]}, "Choose the value", 1),
        ("http", "config.url", {"value": "a\x00b"}, "cannot be stored", None),
        ("http", "config.nothing", {"value": "x"}, "no field", None),
    ],
)
def test_what_is_no_value_is_refused_in_words_with_its_row(type_, field, data, words, row):
    with pytest.raises(FieldError, match=words) as refused:
        read(KINDS[type_].Config, field, post(**data))
    assert refused.value.row == row


def test_an_empty_field_shows_what_holds_then():
    assert show("config.zone", spec_for(KINDS["delay"].Config, "config.zone"), None).example == "UTC"
    assert show("config.url", spec_for(KINDS["http"].Config, "config.url"), None).example.startswith("https://")


def test_a_time_zone_is_chosen_among_those_that_there_are():
    shown = show("config.zone", spec_for(KINDS["schedule"].Config, "config.zone"), "Europe/Berlin")
    drawn = render_to_string("canvas/field.html", {"field": shown})
    assert '<option value="UTC">' in drawn and '<option value="America/New_York">' in drawn and "posix" not in drawn
    assert KINDS["delay"].Config.model_fields["zone"].metadata == KINDS["schedule"].Config.model_fields["zone"].metadata


def test_an_example_of_an_ai_step_shows_what_its_answer_looks_like():
    def shown(**config):
        fields = setup_fields("ai", KINDS["ai"].Config, {"prompt": "x", "examples": {"We are 480\npeople": "a"}} | config, Offer())
        return next(one for one in fields if one.name == "config.examples")

    extract = shown(task="extract", schema=FULL["ai"]["schema"])
    assert extract.example == '{"score": 0, "why": "…", "tags": []}'
    html = render_to_string(extract.template, {"field": extract})
    assert 'data-lang="json"' in html and "We are 480\npeople</textarea>" in html
    classify = shown(task="classify", labels={"hot": "wants to buy", "cold": "does not"})
    assert classify.example == "hot" and 'data-lang="json"' not in render_to_string(classify.template, {"field": classify})
    assert read(KINDS["ai"].Config, "config.examples", post(key=["a\nb"], value=['{"score": 1}'])) == {"a\nb": '{"score": 1}'}
    for schema in (None, 5, {"properties": 5}, {"properties": {"a": 5}}):
        assert shown(task="extract", schema=schema).example


def test_holidays_are_chosen_by_country_and_part():
    spec = dict(specs_of(KINDS["delay"].Config))["calendar"]
    shown = show("config.calendar", spec, "DE-BY")
    assert shown.data["countries"]["DE"] == "Germany" and shown.data["parts"]["BY"] == "Bayern"
    html = render_to_string(shown.template, {"field": shown})
    assert '<option value="DE" selected>Germany' in html and '<option value="BY" selected>Bayern' in html
    assert 'name="part"' not in render_to_string(shown.template, {"field": show("config.calendar", spec, None)})
    config = KINDS["delay"].Config
    chosen = [{"country": "DE", "part": "BY"}, {"country": "DE", "part": ""}, {"country": "US", "part": "BY"}, {"country": "", "part": "BY"}]
    assert [read(config, "config.calendar", post(**one)) for one in chosen] == ["DE-BY", "DE", "US", None]


def test_every_calendar_that_is_offered_is_one():
    for country in calendars():
        check_calendar(country)
        for part in parts(country):
            check_calendar(f"{country}-{part}")


def test_a_step_is_offered_the_connections_that_fit_it():
    offer = Offer((("CRM", "bearer", ""), ("AI", "openai", ""), ("Hooks", "signing", "")))

    def offered(type_, chosen=""):
        data = show("config.connection", spec_for(KINDS[type_].Config, "config.connection"), chosen, offer).data
        return [name for name, _, _ in data["options"]], data["missing"]

    assert offered("ai") == (["AI"], "")
    assert offered("http") == (["CRM", "AI"], "")
    assert offered("ai", "CRM") == (["AI"], "does not fit here")
    assert offered("http", "Hooks")[1] == "does not fit here"


def test_a_connection_that_is_gone_is_shown_as_missing_and_not_silently_replaced():
    shown = show("config.connection", spec_for(KINDS["http"].Config, "config.connection"), "CRM", Offer((("Other", "bearer", ""),)))
    assert "CRM (missing)" in render_to_string("canvas/field.html", {"field": shown})


def test_a_schema_that_says_more_than_rows_is_edited_as_json():
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    shown = show("config.schema", spec_for(KINDS["ai"].Config, "config.schema"), schema)
    assert not shown.data["as_rows"] and '"properties"' in shown.data["text"]


def test_the_strip_shows_when_attempts_begin_and_the_worst_case_what_they_cost():
    policy = RetryPolicy(max_attempts=5, first=10, longest=600, total=3600)
    assert latest_times(policy) == [0, 10, 30, 70, 150]
    assert [dot.label for dot in strip(policy)] == ["0 s", "10 s", "30 s", "1 m 10 s", "2 m 30 s"]
    assert worst_case(policy, 30) == 150 + 5 * 30
    assert latest_times(RetryPolicy(max_attempts=9, first=600, longest=600, total=1500)) == [0, 600, 1200]
    assert latest_times(RetryPolicy(max_attempts=1)) == [0]


CALL = {"id": "call", "type": "http", "config": {"method": "POST", "url": "https://a.example/x"}}


def test_the_rule_for_interruptions_is_the_types_until_somebody_chooses():
    assert safety_of(CALL, KINDS["http"], []).rule == "ask"
    assert safety_of({**CALL, "on_interrupted": "repeat"}, KINDS["http"], []).header is not None
    check = read_safety(CALL, "on_interrupted", post(value="check"))["on_interrupted"]
    assert check["check"]["request"] == {"method": "GET", "url": "https://a.example/x"}
    shown = safety_of({**CALL, "on_interrupted": check}, KINDS["http"], [])
    assert shown.rule == "check" and [one.name.rpartition(".")[2] for one in shown.check] == ["connection", "method", "url", "happened", "output", "after"]
    assert not safety_of({"id": "x", "type": "delay"}, KINDS["delay"], []).outside


@pytest.mark.parametrize(
    ("field", "data", "expected"),
    [
        ("retry", {"max_attempts": "5", "first": "10 s", "longest": "10 min", "total": ""}, {"retry": {"max_attempts": 5, "first": "10 s", "longest": "10 m", "total": "1h"}}),
        ("timeout", {"value": "30"}, {"timeout": "30s"}),
        ("on_error", {"value": "fail"}, {"on_error": None}),
        ("on_error", {"value": "lane"}, {"on_error": {"steps": []}}),
        ("on_interrupted.check.after", {"number": "1", "unit": "m"}, {"on_interrupted.check.after": "1m"}),
        ("on_interrupted.check.request.method", {"value": "HEAD"}, {"on_interrupted.check.request.method": "HEAD"}),
    ],
)
def test_safety_reads_what_is_typed(field, data, expected):
    assert read_safety(CALL, field, post(**data)) == expected


@pytest.mark.parametrize(("field", "data"), [("retry", {"max_attempts": "0"}), ("retry", {"max_attempts": "²"}), ("retry", {"max_attempts": "9" * 5000}), ("retry", {"max_attempts": "3", "first": "1h", "longest": "1m"}), ("timeout", {"value": "0.2"}), ("timeout", {"value": "{{ 1 }}"}), ("retry", {"max_attempts": "3", "first": "{{"}), ("retry", {"max_attempts": "3", "longest": "{{ 2 }}"}), ("on_error", {"value": "x"}), ("on_interrupted", {"value": "x"})])
def test_safety_refuses_what_makes_no_sense(field, data):
    with pytest.raises(FieldError):
        read_safety(CALL, field, post(**data))


def test_an_error_lane_that_is_there_keeps_its_steps():
    step = {**CALL, "on_error": {"steps": [{"id": "x", "type": "delay"}]}}
    assert read_safety(step, "on_error", post(value="lane")) == {"on_error": step["on_error"]}
