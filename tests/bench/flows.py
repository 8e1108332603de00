"""Flows of any size for measurements, made like flows that people make: lanes, loops, and texts that refer to earlier steps."""

from __future__ import annotations

from typing import Any

from runtime.definition import walk

Step = dict[str, Any]


def flow_of(size: int) -> dict[str, Any]:
    """A definition with exactly so many steps, lanes and bodies included."""
    steps: list[Step] = [{"id": "step_1", "type": "set", "name": "Start", "config": {"values": {"n": 1}}}]
    number = 1
    while (left := size - sum(1 for _ in walk(steps))) > 0:
        number += 1
        block = _block(number)
        steps.append(block if sum(1 for _ in walk([block])) <= left else _plain(number))
    sample = {"id": 1, "email": "priya@example.com", "company": "Halden Robotics", "items": [{"name": "a", "price": 3}]}
    return {
        "format": 1,
        "name": f"A flow of {size} steps",
        "title": "{{ trigger.body.company }}",
        "triggers": [{"id": "lead", "type": "webhook", "name": "New lead", "config": {"sample": sample}}],
        "steps": steps,
    }


def _block(n: int) -> Step:
    match n % 5:
        case 0:
            yes = [_call(f"call_{n}"), _mail(f"mail_{n}")]
            no = [{"id": f"wait_{n}", "type": "delay", "config": {"for": "2d"}}]
            return {
                "id": f"large_{n}",
                "type": "condition",
                "name": f"Large {n}?",
                "branches": [
                    {"id": "yes", "label": "Yes", "when": "steps.step_1.output.n > 70 && trigger.body.id > 0", "steps": yes},
                    {"id": "no", "label": "No", "steps": no},
                ],
            }
        case 1:
            body = [_call(f"each_call_{n}"), _plain(10_000 + n)]
            return {"id": f"each_{n}", "type": "loop", "config": {"items": "trigger.body.items"}, "steps": body}
        case 2:
            return _call(f"call_{n}")
        case 3:
            return _mail(f"mail_{n}")
    return _plain(n)


def _plain(n: int) -> Step:
    values = {"n": "{{ steps.step_1.output.n + 1 }}", "who": "{{ trigger.body.email }} of {{ trigger.body.company }}"}
    return {"id": f"set_{n}", "type": "set", "name": f"Values {n}", "config": {"values": values}}


def _call(name: str) -> Step:
    config = {"method": "POST", "url": "https://crm.example/{{ trigger.body.id }}", "json": {"n": "{{ steps.step_1.output.n }}"}}
    return {"id": name, "type": "http", "name": name.replace("_", " ").capitalize(), "config": config}


def _mail(name: str) -> Step:
    config = {"to": ["{{ trigger.body.email }}"], "subject": "Hello {{ trigger.body.company }}", "body": "{{ steps.step_1.output.n }}"}
    return {"id": name, "type": "email", "name": name.replace("_", " ").capitalize(), "config": config}
