from django.core.management.base import BaseCommand

from runtime.failpoints import NAMES


class Command(BaseCommand):
    help = "List the places where HOLDFAST_FAILPOINT=name:n kills the process at the n-th passing."

    def handle(self, *args, **options):
        for name, meaning in NAMES.items():
            self.stdout.write(f"{name:18} {meaning}")
