#!/usr/bin/env python
"""Holdfast's command line: `manage.py up` starts everything, `manage.py help` lists the rest."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "builder.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError:
        go_on_in_the_environment_of_make_up()
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as wrong:
        sys.exit(f"Holdfast: {wrong}")


def go_on_in_the_environment_of_make_up() -> None:
    """Whoever called another Python gets the one that has the packages, if there is one."""
    python = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".venv", "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(os.path.dirname(os.path.dirname(python))) or not os.path.exists(python):
        sys.exit("Holdfast's packages are missing here: `make up` installs them into .venv and starts it.")
    os.execv(python, [python, *sys.argv])


if __name__ == "__main__":
    main()
