from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runtime", "0039_kept_from")]
    operations = [
        migrations.AddField("workflow", "folder", models.CharField(max_length=80, blank=True, default="", db_default="")),
    ]
