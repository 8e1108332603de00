"""Expressions that people write into workflows: CEL, evaluated with a bounded amount of work and memory.

    compile("steps.qualify.output.score > 70").evaluate({"steps": {...}})          -> True
    compile_template("Hello {{ trigger.body.name }}").render({"trigger": {...}})   -> "Hello Dana"
    compile_value({"to": ["{{ trigger.body.email }}"]}).render({...})              -> {"to": ["dana@example.com"]}

Nothing of Python can be reached from an expression: it sees JSON data and the functions of this package. README.md
tells what the language has, where it goes beyond the specification, and what the limits are.
"""

from .errors import BudgetExceeded, EvaluationError, ExpressionError, SyntaxProblem
from .expression import Expression, compile, patterns_in
from .results import to_json
from .suggest import suggest
from .template import Template, ValueTemplate, compile_template, compile_value

__all__ = [
    "BudgetExceeded",
    "EvaluationError",
    "Expression",
    "ExpressionError",
    "SyntaxProblem",
    "Template",
    "ValueTemplate",
    "compile",
    "compile_template",
    "compile_value",
    "patterns_in",
    "suggest",
    "to_json",
]
