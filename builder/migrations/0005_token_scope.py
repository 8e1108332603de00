from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("builder", "0004_saved_filter")]

    operations = [
        migrations.AddField(
            "apitoken",
            "scope",
            models.CharField(
                choices=[
                    ("all", "Everything that you may do"),
                    ("start", "Start runs, send signals, and see what became of them"),
                    ("read", "Read only"),
                ],
                db_default="all",
                default="all",
                max_length=8,
            ),
        ),
    ]
