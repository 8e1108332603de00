"""What flows where: which data a step may use, and which references of a definition lead nowhere. Pure.

Structure is checked by `runtime.definition`; here it is taken as sound, and what is not is passed over.
"""

from .available import Source, available_at, names_at, request_of
from .known import Known
from .problems import problems, put_right
from .samples import Samples
from .shapes import Shape

__all__ = ["Known", "Samples", "Shape", "Source", "available_at", "names_at", "problems", "put_right", "request_of"]
