"""The design system: states are word, shape and colour; whatever data holds is shown as text."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.template import Context, Template
from django.utils import timezone

from builder.context import rail, theme
from builder.templatetags.charts import meter, run_spark
from builder.templatetags.formats import ago, count, duration, initials, money, relative
from builder.templatetags.icons import PLUGIN_ICON, IconDoesNotExist, icon, step_icon
from builder.templatetags.json_view import MOST_LINES, json_view
from builder.templatetags.states import ALIASES, SHOWN, shown_state, state_bare, state_icon, state_pill
from runtime import states as machines
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

ROOT = Path(__file__).resolve().parents[2]
SUPERUSER = get_user_model()(username="ines", is_superuser=True)


class Seen(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


# States


@pytest.mark.parametrize("state", SHOWN)
@pytest.mark.parametrize("tag", [state_pill, state_bare])
def test_every_state_has_a_word_a_shape_and_a_colour(tag, state):
    seen = Seen(tag(state))
    assert seen.text == SHOWN[state].word
    assert [attrs for name, attrs in seen.tags if name == "svg"][0]["aria-hidden"] == "true"
    assert any(name in ("path", "circle") for name, _ in seen.tags)
    assert f"is-{state}" in seen.tags[0][1]["class"]


def test_no_two_states_share_a_shape_or_a_word():
    shapes = {re.sub(r"is-\w+", "", state_icon(state, hidden=True)) for state in SHOWN}
    assert len(shapes) == len(SHOWN) == len({shown.word for shown in SHOWN.values()})


def test_the_shape_alone_still_says_its_word():
    assert Seen(state_icon("attention")).text == "Needs attention:"


def test_every_state_of_the_state_machines_can_be_shown():
    for machine in (machines.RunState, machines.DispatchState, machines.StepState, machines.AttemptOutcome):
        for state in machine:
            assert state in SHOWN or state in ALIASES, state


def test_an_open_run_looks_as_its_dispatch_row_says():
    assert shown_state("open", "waiting").css == "waiting"
    assert shown_state("open", "claimed").css == shown_state("open").css == "running"
    assert shown_state("failed", "waiting").css == "failed"


def test_an_unknown_state_is_shown_by_its_name_and_escaped():
    assert Seen(state_pill("half_done")).text == "Half done"
    assert "<script" not in state_pill("<script>")


@pytest.mark.parametrize("name", ["running", "waiting", "attention", "failed", "succeeded", "cancelled"])
def test_every_state_colour_is_readable_on_its_ground_in_both_themes(name):
    tokens = (ROOT / "static/css/tokens.css").read_text()
    for side in (0, 1):
        assert contrast(token(tokens, name)[side], token(tokens, f"{name}-soft")[side]) >= 4.5
        assert contrast(token(tokens, name)[side], token(tokens, "surface")[side]) >= 4.5


@pytest.mark.parametrize(
    "ink, ground", [("ink", "bg"), ("ink-2", "surface"), ("ink-3", "hover"), ("on-accent", "accent")]
)
def test_text_is_readable_in_both_themes(ink, ground):
    tokens = (ROOT / "static/css/tokens.css").read_text()
    for side in (0, 1):
        assert contrast(token(tokens, ink)[side], token(tokens, ground)[side]) >= 4.5


def token(tokens: str, name: str) -> tuple[str, str]:
    return re.search(rf"--{name}:\s*light-dark\((#\w{{6}}), (#\w{{6}})\)", tokens).groups()


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, relative luminance and contrast ratio."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# Icons


def test_icons_are_silent_unless_named():
    assert Seen(icon("bolt")).tags[0][1]["aria-hidden"] == "true"
    named = Seen(icon("bolt", label='A "webhook"')).tags[0][1]
    assert (named["role"], named["aria-label"]) == ("img", 'A "webhook"')
    assert "aria-hidden" not in named


def test_icons_that_we_did_not_draw_come_from_lucide_and_wrong_names_fail():
    assert "<path" in icon("user")
    with pytest.raises(IconDoesNotExist):
        icon("no-such-icon")


def test_every_step_type_has_an_icon_and_plug_ins_get_one_too():
    for kind in (*step_types().values(), *trigger_kinds().values()):
        assert step_icon(kind.type) == icon(kind.icon) != icon(PLUGIN_ICON)
    assert step_icon("acme_fax") == icon(PLUGIN_ICON)


# Numbers, times, names


@pytest.mark.parametrize(
    "value, text",
    [
        (0.04, "0.04 s"),
        (0.001, "<0.01 s"),
        (4.7, "4.7 s"),
        (9.96, "10 s"),
        (38, "38 s"),
        (4, "4 s"),
        (59.7, "1 m"),
        (182, "3 m 2 s"),
        (timedelta(hours=19, minutes=58), "19 h 58 m"),
        (timedelta(days=1, hours=4, minutes=59), "1 d 4 h"),
        (None, ""),
    ],
)
def test_durations_have_two_units_at_most(value, text):
    assert duration(value) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0.4, "now"),
        (38, "38 s ago"),
        (14 * 60 + 59, "14 m ago"),
        (26 * 3600, "1 d ago"),
        (-(52 * 3600 + 60), "in 2 d 4 h"),
    ],
)
def test_relative_times_use_one_unit_for_the_past_and_two_for_the_future(seconds, text):
    assert relative(seconds) == text


def test_a_relative_time_carries_the_absolute_one():
    moment = timezone.now() - timedelta(minutes=14)
    (_, attrs) = Seen(ago(moment)).tags[0]
    assert abs(datetime.fromisoformat(attrs["datetime"]) - moment) < timedelta(milliseconds=2)
    assert str(moment.year) in attrs["title"]
    assert ago(None) == ""


@pytest.mark.parametrize(
    "value, text",
    [
        (Decimal("0.0041"), "$0.0041"),
        (Decimal("3.6666"), "$3.67"),
        (1234.5, "$1,234.50"),
        (0, "$0.00"),
        (None, "unknown"),
        ("rubbish", "unknown"),
        (float("nan"), "unknown"),
        (Decimal("0.00001"), "<$0.0001"),
    ],
)
def test_an_unknown_cost_is_never_shown_as_zero(value, text):
    assert money(value) == text


def test_numbers_are_grouped_and_names_are_shortened():
    assert count(48213) == "48,213"
    assert count(None) == ""
    assert [initials(name) for name in ("Ines Carvalho", "dana.whitfield@example.com", "marcus", "")] == [
        "IC",
        "DW",
        "MA",
        "?",
    ]


# JSON

HOSTILE = {
    '<img src=x onerror="alert(1)">': "</span><script>alert(1)</script>",
    "quote": "\"'&",
    "long": "x" * 79 + "<b>" + "y" * 200,
    "control": "\x00\x1b[31m",
    "list": ["<i>", None, True, 1.5, Decimal("2.10"), datetime(2026, 5, 11, tzinfo=UTC)],
}


def test_json_shows_everything_as_text():
    seen = Seen(json_view(HOSTILE))
    assert {name for name, _ in seen.tags} <= {"ol", "li", "span", "button"}
    assert not [attrs for _, attrs in seen.tags for name in attrs if name.startswith("on")]
    assert "<script>alert(1)</script>" in seen.text


def test_long_strings_are_folded_and_complete():
    html = json_view("a" * 119)
    assert "+39" in html
    assert Seen(html).text.replace("+39", "") == json.dumps("a" * 119)
    assert "<button" not in json_view("a" * 99) and "+20" in json_view("a" * 100), "a few letters are not worth a button"


def test_a_value_cannot_disguise_itself_by_turning_the_direction_of_text():
    shown = json_view("invoice\u202egpj.exe\u200b\ud800")
    assert "\\u202e" in shown and "\\u200b" in shown and "\\ud800" in shown
    assert "\u202e" not in shown


def test_deep_and_large_json_is_cut_and_says_so():
    deep: list = []
    for _ in range(900):
        deep = [deep]
    assert "…" in json_view(deep)
    assert ">63,002 more lines<" in json_view({str(n): list(range(20)) for n in range(MOST_LINES)})


def test_deep_parts_are_folded_and_can_be_opened():
    html = json_view({"a": {"b": {"c": {"d": {"e": 1}}}}})
    seen = Seen(html)
    assert [attrs["data-unfold"] for name, attrs in seen.tags if name == "button"] == ["1"]
    assert [attrs["data-fold"] for name, attrs in seen.tags if name == "li" and "hidden" in attrs] == ["1"]


# Charts


def test_charts_need_no_style_and_stay_within_their_frame():
    assert 'width="60%"' in meter(60, 100)
    assert 'width="100%"' in meter(500, 100)
    assert 'width="0%"' in meter(None, 0)
    told = Seen(run_spark(["succeeded", "failed", "waiting"])).tags[0][1]["aria-label"]
    assert told == "Last 3 runs: 1 succeeded, 1 failed, 1 waiting, 0 running"


# The frame


def test_only_known_themes_reach_the_page(rf):
    request = rf.get("/")
    for cookie, shown in [("dark", "dark"), ("light", "light"), ('"><script>', ""), ("", "")]:
        request.COOKIES["hf-theme"] = cookie
        assert theme(request) == shown


def test_the_rail_marks_where_one_is():
    paths = ("/", "/runs/7/", "/approvals/", "/other/")
    current = {path: [link.name for link in rail(path, SUPERUSER) if link.current] for path in paths}
    assert current == {"/": ["flows"], "/runs/7/": ["runs"], "/approvals/": ["approvals"], "/other/": []}


def test_the_rail_shows_nothing_that_one_may_not_open():
    assert rail("/", AnonymousUser()) == []


def test_every_error_page_stands_alone():
    """The 500 page is rendered without request and without context processors."""
    for status in (400, 403, 404, 405, 409, 413, 429, 500):
        text = render(f'{{% include "{status}.html" %}}')
        assert "<h1>" in text and 'href="/"' in text


def render(source: str, **context: object) -> str:
    return Template(source).render(Context(context))
