"""An AI provider that answers what it is told, in the two dialects: `/v1/chat/completions` and `/v1/messages`.

    with AiServer(answer={"score": 82, "reason": "Asked for a price"}) as ai:
        ai.control(answers=["no json"], hold="hang", hold_times=1)

Settings: `answer` (always) and `answers` (one after the other, before that), as JSON values or texts; `usage` (null:
none is told); `cost` (as OpenRouter tells it); `finish` (the reason of the end); `hold` (`hang`, `die`, `reset`) with
`hold_times`; `refuse` (a status) with `refuse_times` and `refuse_body`; `schemas` (false: they are refused);
`limit` (the name of the only parameter that bounds the answer); `key` (the only API key that is taken).
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from .app import App, Reply, Request, run
from .process import ServerProcess


class AiApp(App):
    settings = {
        "answer": {"score": 82, "reason": "Asked for a price"}, "answers": [], "usage": [120, 30], "cost": None,
        "finish": "", "hold": "reply", "refuse": 0, "refuse_body": {"error": {"message": "Not now."}}, "schemas": True,
        "limit": "", "key": "",
    }  # fmt: skip

    def handle(self, request: Request) -> Reply:
        if self.state["key"] not in (
            "",
            request.headers.get("x-api-key"),
            request.headers.get("authorization", "")[7:],
        ):
            return Reply(401, {"error": {"message": "Incorrect API key provided."}})
        if status := self.take("refuse", 0):
            return Reply(status, self.state["refuse_body"], self.state.get("refuse_headers", {}))
        if refusal := self.refusal(request):
            return Reply(400, {"error": {"message": refusal}})
        answer = self.state["answers"].pop(0) if self.state["answers"] else self.state["answer"]
        path = request.path.partition("?")[0]
        if path == "/v1/chat/completions":
            body = self.completion(request, answer)
        elif path == "/v1/messages":
            body = self.message(request, answer)
        else:
            return Reply(404, {"error": {"message": f"No such address: {request.path}"}})
        return Reply(200, body, then=self.take("hold", "reply"))

    def refusal(self, request: Request) -> str:
        if not self.state["schemas"] and "response_format" in request.body:
            return "Unknown parameter: 'response_format'."
        limit = self.state["limit"]
        if limit == "max_completion_tokens" and "max_tokens" in request.body:
            return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return ""

    def completion(self, request: Request, answer: Any) -> dict[str, Any]:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        body: dict[str, Any] = {
            "id": "chatcmpl-1",
            "model": request.body["model"],
            "choices": [
                {"message": {"role": "assistant", "content": text}, "finish_reason": self.state["finish"] or "stop"}
            ],
        }
        if self.state["usage"]:
            given, made = self.state["usage"]
            body["usage"] = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
            if self.state["cost"] is not None:
                body["usage"]["cost"] = self.state["cost"]
        return body

    def message(self, request: Request, answer: Any) -> dict[str, Any]:
        tool = request.body.get("tool_choice", {}).get("name")
        if tool and not isinstance(answer, str):
            block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": answer}
        else:
            block = {"type": "text", "text": answer if isinstance(answer, str) else json.dumps(answer)}
        body = {"id": "msg_1", "type": "message", "model": request.body["model"], "content": [block]}
        body["stop_reason"] = self.state["finish"] or ("tool_use" if block["type"] == "tool_use" else "end_turn")
        if self.state["usage"]:
            body["usage"] = dict(zip(("input_tokens", "output_tokens"), self.state["usage"], strict=True))
        return body


class AiServer(ServerProcess):
    module = "tests.servers.ai"

    def __init__(self, **settings: Any):
        super().__init__("--settings", json.dumps(settings))

    @property
    def base_url(self) -> str:
        """What an OpenAI-compatible connection is given."""
        return f"{self.url}/v1"


def _make(options: argparse.Namespace) -> AiApp:
    app = AiApp()
    app.state |= json.loads(options.settings)
    return app


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", default="{}")


if __name__ == "__main__":
    run(_make, _arguments)
