"""The Django project and the web side of Holdfast. It imports `runtime`; `runtime` never imports it."""
