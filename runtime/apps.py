from django.apps import AppConfig


class RuntimeConfig(AppConfig):
    name = "runtime"
    verbose_name = "Holdfast runtime"
    default_auto_field = "django.db.models.BigAutoField"
