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
        sys.exit("Holdfast's packages are missing here: `make up` installs them into .venv and starts it.")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as wrong:
        sys.exit(f"Holdfast: {wrong}")


if __name__ == "__main__":
    main()
