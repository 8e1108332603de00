import builder.models.json_in_order
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('builder', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='draft',
            name='definition',
            field=builder.models.json_in_order.JsonInOrder(),
        ),
        migrations.AlterField(
            model_name='revision',
            name='definition',
            field=builder.models.json_in_order.JsonInOrder(),
        ),
    ]
