"""Templates, style sheets and modules: nothing breaks the content security policy, nothing is fetched from elsewhere, and what a
page needs is found under the name that it has once it was collected."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command

from builder.templatetags.shell import _import_map
from tests.builder.test_design import render

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(
    path for path in (ROOT / "templates").rglob("*.html") if not path.relative_to(ROOT / "templates").parts[0] == "mail"
)
STYLES = sorted((ROOT / "static" / "css").rglob("*.css"))
MODULES = sorted((ROOT / "static" / "js").rglob("*.js"))


# No style attributes, no handlers, no inline scripts without a nonce


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_templates_obey_the_content_security_policy(path):
    assert offences(path.read_text()) == []


@pytest.mark.parametrize(
    "bad",
    [
        '<p style="color:red">',
        "<button onclick=go()>",
        "<a hx-on:click='go()'>",
        "<script>go()</script>",
        '<script type="module">go()</script>',
        '<a href="javascript:go()">',
        "<style>p { color: red }</style>",
        '{% if x %}<p class="a"{% endif %} style="color:red">',
    ],
)
def test_the_check_itself_finds_offences(bad):
    assert offences(bad)


def test_the_check_itself_lets_good_templates_through():
    assert (
        offences('<script type="importmap" nonce="{{ csp_nonce }}">{}</script><p data-vars="--x:1" data-on="1">') == []
    )


def offences(source: str) -> list[str]:
    source = re.sub(r"{#.*?#}|{% comment %}.*?{% endcomment %}|{%.*?%}", "", source, flags=re.S)
    found = []
    for tag in re.findall(r"<[a-zA-Z][^<]*?>", source):
        names = re.sub(r"\"[^\"]*\"|'[^']*'", "''", tag)
        found += re.findall(r"[\s'](style|on[a-z]+|hx-on[:\w-]*)\s*=", names)
        found += re.findall(r"=\s*[\"']?\s*javascript:", tag, re.I)
        if re.match(r"<style\b", tag) or (re.match(r"<script\b", tag) and "nonce=" not in tag):
            found.append(tag)
    return found


def test_stylesheets_load_nothing_from_elsewhere_and_all_of_them_are_used():
    entry = (ROOT / "static/css/holdfast.css").read_text()
    for path in STYLES:
        text = path.read_text()
        assert not re.search(r"url\([\"']?(?:https?:|//|data:)", text), path
        if path.name != "holdfast.css":
            assert f'url("{path.relative_to(ROOT / "static/css").as_posix()}")' in entry, f"{path.name} is not imported"


def test_a_class_that_a_template_names_has_a_style_or_is_found_by_a_script():
    """Or somebody thinks that it looks like something. Django's own admin has its own style sheet."""
    known = set(re.findall(r"\.([a-zA-Z][\w-]*)", "".join(path.read_text() for path in (*STYLES, *MODULES))))
    known |= set(re.findall(r"[\w-]+", "".join(path.read_text() for path in MODULES)))
    unknown = {}
    for path in TEMPLATES:
        if "admin" not in path.parts:
            plain = re.sub(r"{%.*?%}|{{.*?}}", " ", path.read_text(), flags=re.S)
            named = {name for told in re.findall(r'class="([^"]*)"', plain) for name in told.split()}
            unknown |= {name: path.name for name in named - known if re.fullmatch(r"[a-zA-Z][\w-]*\w", name)}
    assert unknown == {}


def test_the_style_sheet_is_collected_as_one_file(settings, tmp_path):
    collected = {"BACKEND": "builder.stylesheet.OneStyleSheet"}
    settings.STATIC_ROOT, settings.STORAGES = tmp_path, {**settings.STORAGES, "staticfiles": collected}
    call_command("collectstatic", interactive=False, verbosity=0)
    sheet = (tmp_path / staticfiles_storage.stored_name("css/holdfast.css")).read_text()
    assert "@import" not in sheet and sheet.count("@layer components {") == len(STYLES) - 5
    assert sheet.index("@layer reset, tokens, base, components, utilities;") < sheet.index("@layer reset {")
    chevron = staticfiles_storage.stored_name("img/chevron.svg")
    assert f'url("../{chevron}")' in sheet and chevron != "img/chevron.svg" and (tmp_path / chevron).exists()


def test_a_module_that_was_not_collected_fails_no_page(settings, tmp_path):
    (tmp_path / "staticfiles.json").write_text('{"version": "1.1", "paths": {"js/vars.js": "js/vars.123456.js"}, "hash": ""}')
    manifest = {"BACKEND": "builder.stylesheet.OneStyleSheet"}
    settings.STATIC_ROOT, settings.STORAGES = tmp_path, {**settings.STORAGES, "staticfiles": manifest}
    settings.DEBUG = False
    assert json.loads(_import_map()) == {"imports": {"hf/vars": "/static/js/vars.123456.js"}}


def test_a_page_fetches_at_once_all_that_its_module_imports():
    """Each module that is found only in another one costs the page a way to the server and back."""
    text = render('{% load holdfast %}{% module_preloads "js/canvas/builder.js" %}', csp_nonce="abc")
    links = re.findall(r'<link rel="modulepreload" href="/static/js/([^"]+?)(?:\.[0-9a-f]{12})?\.js" nonce="abc">', text)
    assert len(links) == len(set(links)) == text.count("<link")
    needed, wanted = set(), ["canvas/builder"]
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted += re.findall(r"""(?:^|\s)(?:import|from)\s*["']hf/([^"']+)["']""", (ROOT / "static/js" / f"{name}.js").read_text())
    assert set(links) == needed and len(needed) > 30


def test_modules_import_each_other_by_the_names_of_the_import_map():
    """The static storage renames files by content, so a relative import would find nothing in production."""
    names = {"hf/" + path.relative_to(ROOT / "static/js").with_suffix("").as_posix() for path in MODULES}
    mapped = json.loads(render("{% load holdfast %}{% import_map %}"))["imports"]
    assert names <= mapped.keys()
    for path in MODULES:
        imported = re.findall(r"""(?:^|\s)(?:import|from)\s*\(?["']([^"']+)["']""", path.read_text())
        assert set(imported) <= names, path
