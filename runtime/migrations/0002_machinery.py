"""What models cannot say: the clock, the sequences, storage settings, and the triggers that refuse illegal history."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0001_initial")]
    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
