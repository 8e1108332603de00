"""A version made ready: what it reads, where its callbacks are, how its steps may be tried."""

from __future__ import annotations

from runtime.plan import make_plan


def plan(*steps: dict, **more):
    return make_plan({"format": 1, "name": "x", "steps": list(steps), **more})


def say(id: str, value: str) -> dict:
    return {"id": id, "type": "set", "config": {"values": {"v": value}}}


def test_only_outputs_that_some_expression_reads_are_loaded():
    made = plan(say("a", "x"), say("b", "{{ steps.a.output.v }}"), say("c", "{{ 1 }}"))
    assert made.referenced == {"a"}


def test_references_are_found_wherever_expressions_are():
    inner = [
        {
            "id": "call",
            "type": "http",
            "config": {"url": "https://x.example/{{ steps.in_url.output }}"},
            "on_interrupted": {
                "check": {
                    "request": {"url": "https://x.example/{{ steps.in_check.output }}"},
                    "happened": "steps.in_happened.output",
                    "output": "steps.in_output.output",
                }
            },
        }
    ]
    made = plan(
        {
            "id": "each",
            "type": "loop",
            "config": {"items": "steps.in_items.output", "collect": "steps.in_collect.output"},
            "steps": inner,
        },
        {"id": "again", "type": "loop", "config": {"while": "steps.in_while.output < 3"}, "steps": []},
        {
            "id": "which",
            "type": "condition",
            "branches": [{"id": "a", "when": "steps.in_when.output", "steps": []}, {"id": "b", "steps": []}],
        },
        title="{{ steps.in_title.output }}",
    )
    places = ("url", "check", "happened", "output", "items", "collect", "while", "when", "title")
    assert made.referenced == {f"in_{place}" for place in places}
    assert made.always == {"which"}


def test_an_expression_that_takes_all_steps_loads_all():
    assert plan(say("a", "{{ steps }}")).referenced == {"*"}


def test_callbacks_are_known_by_their_path_outside_and_inside_of_loops():
    def callback(id: str) -> dict:
        return {"id": id, "type": "callback"}

    call = {"id": "call", "type": "http", "config": {"url": "https://x.example/"}}
    made = plan(
        callback("top"),
        {
            "id": "both",
            "type": "parallel",
            "branches": [{"id": "l", "steps": [callback("left")]}, {"id": "r", "steps": []}],
        },
        {**call, "on_error": {"steps": [callback("rescue")]}},
        {
            "id": "each",
            "type": "loop",
            "config": {"items": "[]"},
            "on_error": {"steps": [callback("after_loop")]},
            "steps": [
                {
                    "id": "deep",
                    "type": "parallel",
                    "branches": [{"id": "l", "steps": [callback("inner")]}, {"id": "r", "steps": []}],
                },
                {"id": "nested", "type": "loop", "config": {"items": "[]"}, "steps": [callback("innermost")]},
            ],
        },
    )
    assert made.callbacks == {
        "top": "top",
        "left": "both/l/left",
        "rescue": "call/on_error/rescue",
        "after_loop": "each/on_error/after_loop",
    }
    each = made.nodes[3]
    assert each.callbacks == {"inner": "deep/l/inner"}
    assert each.body[1].callbacks == {"innermost": "innermost"}


def test_what_a_step_may_do_when_it_was_interrupted():
    def http(method: str, **more) -> object:
        return (
            plan({"id": "c", "type": "http", "config": {"method": method, "url": "https://x.example/"}, **more})
            .nodes[0]
            .interrupted
        )

    assert [http(method) for method in ("GET", "HEAD", "PUT", "DELETE", "POST", "PATCH")] == ["repeat"] * 4 + [
        "ask"
    ] * 2
    assert http("POST", on_interrupted="repeat") == "repeat"
    ai = {"id": "a", "type": "ai", "config": {"task": "generate", "prompt": "x"}}
    assert plan(ai).nodes[0].interrupted == "repeat"
