from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0012_frames_are_open'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['team_id', '-id'], name='audit_team'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['action', '-id'], name='audit_action'),
        ),
    ]
