"""Which run gave a result that another one began with."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runtime", "0038_posts")]
    operations = [
        migrations.AddField(model_name="stepresult", name="kept_from", field=models.BigIntegerField(null=True)),
    ]
