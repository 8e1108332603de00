from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0026_step_file'),
    ]

    operations = [
        migrations.AddField(
            model_name='workflow',
            name='paused_why',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
    ]
