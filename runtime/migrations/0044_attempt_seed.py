"""A call that a continued run makes again has the key that it had."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runtime", "0043_leapt_clock")]
    operations = [migrations.AddField(model_name="attempt", name="seed", field=models.TextField(null=True))]
