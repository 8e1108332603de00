from django_q.management.commands.qcluster import Command as QCluster

from runtime.cluster import install


class Command(QCluster):
    help = "Start the worker processes of this host, supervised by django-q2. SIGTERM stops them in order."

    def handle(self, *args, **options):
        install()
        super().handle(*args, **options)
