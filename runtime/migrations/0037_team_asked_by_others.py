"""Teams say whether flows of other teams may ask them; their names differ by more than by case."""

from django.db import migrations, models
from django.db.models.functions import Lower

APART = """
update team set name = left(name, 80) || ' (' || id || ')'
where exists (select from team other where lower(other.name) = lower(team.name) and other.id < team.id)
"""


class Migration(migrations.Migration):
    dependencies = [("runtime", "0036_looks")]
    operations = [
        migrations.AddField("team", "asked_by_others", models.BooleanField(default=False, db_default=False)),
        migrations.RunSQL(APART, migrations.RunSQL.noop),
        migrations.AddConstraint("team", models.UniqueConstraint(Lower("name"), name="team_name_once")),
    ]
