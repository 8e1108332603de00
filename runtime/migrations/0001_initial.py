"""The tables of the runtime. The clock comes first: columns have it as their default."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import runtime.clock
import runtime.models.json_in_order
import runtime.models.trigger
import runtime.states
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL((Path(runtime.clock.__file__).parent / "sql" / "clock.sql").read_text(), migrations.RunSQL.noop),
        migrations.CreateModel(
            name='Wait',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.BigIntegerField()),
                ('scope', models.TextField(db_collation='C', default='')),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField(default=1)),
                ('kind', models.CharField(max_length=8)),
                ('n', models.IntegerField(default=1)),
                ('state', models.CharField(default=runtime.states.WaitState['OPEN'], max_length=9)),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('data', runtime.models.json_in_order.JsonInOrder(default=dict)),
                ('outcome', runtime.models.json_in_order.JsonInOrder(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'wait',
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'scope', 'path', 'take', 'n', blank=True, editable=False, primary_key=True, serialize=False)),
                ('run_id', models.BigIntegerField()),
                ('scope', models.TextField(db_collation='C')),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField()),
                ('n', models.IntegerField()),
                ('operation', models.TextField(default='call')),
                ('token', models.BigIntegerField()),
                ('request', runtime.models.json_in_order.JsonInOrder(null=True)),
                ('response', runtime.models.json_in_order.JsonInOrder(null=True)),
                ('outcome', models.CharField(max_length=8, null=True)),
                ('error', models.TextField(null=True)),
                ('cost', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                ('tokens_in', models.IntegerField(null=True)),
                ('tokens_out', models.IntegerField(null=True)),
                ('started_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'db_table': 'attempt',
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
                ('actor_name', models.TextField(default='')),
                ('team_id', models.BigIntegerField(null=True)),
                ('action', models.CharField(max_length=32)),
                ('subject', models.TextField()),
                ('detail', models.JSONField(default=dict)),
                ('address', models.GenericIPAddressField(null=True)),
            ],
            options={
                'db_table': 'audit',
            },
        ),
        migrations.CreateModel(
            name='Credential',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('kind', models.CharField(max_length=16)),
                ('hosts', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('config', models.JSONField(default=dict)),
                ('secret', models.BinaryField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'credential',
            },
        ),
        migrations.CreateModel(
            name='Decision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('decided_by', models.TextField()),
                ('answer', models.CharField(max_length=7)),
                ('comment', models.TextField(blank=True, default='')),
                ('form', runtime.models.json_in_order.JsonInOrder(default=dict)),
                ('address', models.GenericIPAddressField(blank=True, null=True)),
                ('decided_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
            ],
            options={
                'db_table': 'decision',
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trigger_key', models.CharField(max_length=64)),
                ('idempotency_key', models.TextField(blank=True, null=True)),
                ('input_hash', models.CharField(blank=True, default='', max_length=64)),
                ('input', runtime.models.json_in_order.JsonInOrder(default=dict)),
                ('state', models.CharField(default=runtime.states.RunState['OPEN'], max_length=10)),
                ('title', models.TextField(blank=True, default='')),
                ('test', models.BooleanField(default=False)),
                ('output', runtime.models.json_in_order.JsonInOrder(blank=True, null=True)),
                ('error', models.JSONField(blank=True, null=True)),
                ('cost', models.DecimalField(blank=True, decimal_places=8, max_digits=14, null=True)),
                ('created_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'run',
            },
        ),
        migrations.CreateModel(
            name='Frame',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'path', 'take', blank=True, editable=False, primary_key=True, serialize=False)),
                ('run_id', models.BigIntegerField()),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField()),
                ('kind', models.CharField(max_length=8)),
                ('total', models.IntegerField(null=True)),
                ('cursor', models.IntegerField(default=0)),
                ('open', models.JSONField(default=list)),
                ('succeeded', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
                ('closed', models.BooleanField(default=False)),
                ('started_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
            ],
            options={
                'db_table': 'frame',
            },
        ),
        migrations.CreateModel(
            name='FrameChunk',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'path', 'take', 'n', blank=True, editable=False, primary_key=True, serialize=False)),
                ('run_id', models.BigIntegerField()),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField()),
                ('n', models.IntegerField()),
                ('items', runtime.models.json_in_order.JsonInOrder()),
            ],
            options={
                'db_table': 'frame_chunk',
            },
        ),
        migrations.CreateModel(
            name='FrameValue',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'path', 'take', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('run_id', models.BigIntegerField()),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField()),
                ('index', models.IntegerField()),
                ('value', runtime.models.json_in_order.JsonInOrder(null=True)),
            ],
            options={
                'db_table': 'frame_value',
            },
        ),
        migrations.CreateModel(
            name='JournalMark',
            fields=[
                ('worker_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('epoch', models.IntegerField(default=1)),
                ('batch', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'journal_mark',
            },
        ),
        migrations.CreateModel(
            name='LogLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.BigIntegerField()),
                ('path', models.TextField(default='')),
                ('at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
                ('level', models.CharField(default='info', max_length=7)),
                ('text', models.TextField()),
                ('data', runtime.models.json_in_order.JsonInOrder(null=True)),
            ],
            options={
                'db_table': 'log_line',
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('viewer', 'Viewer'), ('builder', 'Builder'), ('operator', 'Operator'), ('admin', 'Administrator')], default='viewer', max_length=10)),
            ],
            options={
                'db_table': 'membership',
            },
        ),
        migrations.CreateModel(
            name='OutboxMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.BigIntegerField(db_index=True, null=True)),
                ('path', models.TextField(db_collation='C', default='')),
                ('take', models.IntegerField(default=1)),
                ('kind', models.CharField(max_length=16)),
                ('recipient', models.TextField()),
                ('occurrence', models.IntegerField(default=1)),
                ('message_id', models.TextField()),
                ('payload', models.JSONField()),
                ('state', models.CharField(default=runtime.states.OutboxState['QUEUED'], max_length=7)),
                ('attempts', models.IntegerField(default=0)),
                ('due_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
                ('token', models.BigIntegerField(blank=True, null=True)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('error', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
            ],
            options={
                'db_table': 'outbox',
            },
        ),
        migrations.CreateModel(
            name='Recipient',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.EmailField(max_length=320)),
                ('nonce', models.CharField(max_length=44)),
                ('key_id', models.CharField(max_length=16)),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('viewed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'recipient',
            },
        ),
        migrations.CreateModel(
            name='Signal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.BigIntegerField()),
                ('path', models.TextField(db_collation='C')),
                ('dedupe', models.TextField()),
                ('payload', runtime.models.json_in_order.JsonInOrder(null=True)),
                ('received_at', models.DateTimeField(db_default=runtime.clock.BusinessNow())),
            ],
            options={
                'db_table': 'signal',
            },
        ),
        migrations.CreateModel(
            name='StepResult',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'scope', 'path', 'take', blank=True, editable=False, primary_key=True, serialize=False)),
                ('run_id', models.BigIntegerField()),
                ('scope', models.TextField(db_collation='C')),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField()),
                ('step', models.TextField()),
                ('state', models.CharField(max_length=9)),
                ('input', runtime.models.json_in_order.JsonInOrder(null=True)),
                ('output', runtime.models.json_in_order.JsonInOrder(null=True)),
                ('error', models.JSONField(null=True)),
                ('token', models.BigIntegerField()),
                ('cost', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField()),
                ('superseded', models.BooleanField(default=False)),
            ],
            options={
                'db_table': 'step_result',
            },
        ),
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'db_table': 'team',
            },
        ),
        migrations.CreateModel(
            name='Trigger',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64)),
                ('type', models.CharField(max_length=32)),
                ('config', models.JSONField(default=dict)),
                ('token', models.CharField(default=runtime.models.trigger.new_token, max_length=64, unique=True)),
                ('enabled', models.BooleanField(default=True)),
                ('next_at', models.DateTimeField(blank=True, null=True)),
                ('last_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'trigger',
            },
        ),
        migrations.CreateModel(
            name='Version',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(blank=True, null=True)),
                ('format', models.PositiveSmallIntegerField(default=1)),
                ('definition', runtime.models.json_in_order.JsonInOrder()),
                ('hash', models.CharField(max_length=64)),
                ('note', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'db_table': 'version',
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.TextField()),
                ('host', models.TextField()),
                ('pid', models.IntegerField()),
                ('code_version', models.TextField(default='')),
                ('formats', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), default=list, size=None)),
                ('step_types', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('beat_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('slots', models.IntegerField(default=0)),
                ('in_flight', models.IntegerField(default=0)),
                ('finished', models.BigIntegerField(default=0)),
                ('stopping', models.BooleanField(default=False)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'db_table': 'worker',
            },
        ),
        migrations.CreateModel(
            name='Workflow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('paused', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'workflow',
            },
        ),
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('wait', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='approval', serialize=False, to='runtime.wait')),
                ('run_id', models.BigIntegerField(db_index=True)),
                ('subject', models.TextField()),
                ('message', models.TextField(blank=True, default='')),
                ('details', runtime.models.json_in_order.JsonInOrder(default=list)),
                ('form', runtime.models.json_in_order.JsonInOrder(default=list)),
                ('effects', runtime.models.json_in_order.JsonInOrder(default=dict)),
                ('policy', models.CharField(default='any', max_length=8)),
                ('needed', models.IntegerField(default=1)),
                ('on_expired', models.CharField(default='reject', max_length=8)),
            ],
            options={
                'db_table': 'approval',
            },
        ),
        migrations.AddIndex(
            model_name='wait',
            index=models.Index(condition=models.Q(('due_at__isnull', False), ('state', 'open')), fields=['due_at'], name='wait_due'),
        ),
        migrations.AddIndex(
            model_name='wait',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['kind', '-id'], name='wait_open_kind'),
        ),
        migrations.AddIndex(
            model_name='wait',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['run_id', 'due_at'], name='wait_open_run'),
        ),
        migrations.AddConstraint(
            model_name='wait',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['timer', 'retry', 'approval', 'callback', 'child', 'person'])), name='wait_kind'),
        ),
        migrations.AddConstraint(
            model_name='wait',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['open', 'resolved', 'cancelled', 'suspended'])), name='wait_state'),
        ),
        migrations.AddConstraint(
            model_name='wait',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('outcome__isnull', False), ('resolved_at__isnull', False), ('state', 'resolved')), models.Q(models.Q(('state', 'resolved'), _negated=True), ('outcome__isnull', True)), _connector='OR'), name='wait_outcome'),
        ),
        migrations.AddConstraint(
            model_name='wait',
            constraint=models.UniqueConstraint(fields=('run_id', 'scope', 'path', 'take', 'kind', 'n'), name='wait_place'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__isnull', True), ('outcome__in', ['not_sent', 'refused', 'answered', 'unknown']), _connector='OR'), name='attempt_outcome'),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='actor',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='decision',
            name='user',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='Dispatch',
            fields=[
                ('run', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='runtime.run')),
                ('version_id', models.BigIntegerField()),
                ('state', models.CharField(default=runtime.states.DispatchState['READY'], max_length=8)),
                ('due_at', models.DateTimeField(null=True)),
                ('token', models.BigIntegerField(null=True)),
                ('worker_id', models.BigIntegerField(null=True)),
                ('leased_until', models.DateTimeField(null=True)),
                ('claims', models.IntegerField(default=0)),
                ('wakes', models.IntegerField(default=0)),
                ('lost', models.SmallIntegerField(default=0)),
                ('alone', models.BooleanField(default=False)),
                ('deaths', models.SmallIntegerField(default=0)),
            ],
            options={
                'db_table': 'dispatch',
            },
        ),
        migrations.AddField(
            model_name='run',
            name='rerun_of',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='reruns', to='runtime.run'),
        ),
        migrations.AddField(
            model_name='run',
            name='started_by',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='logline',
            index=models.Index(fields=['run_id', 'id'], name='log_line_run'),
        ),
        migrations.AddField(
            model_name='membership',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='outboxmessage',
            index=models.Index(condition=models.Q(('state__in', ['queued', 'sending'])), fields=['due_at'], name='outbox_due'),
        ),
        migrations.AddConstraint(
            model_name='outboxmessage',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'sending', 'sent', 'failed'])), name='outbox_state'),
        ),
        migrations.AddConstraint(
            model_name='outboxmessage',
            constraint=models.UniqueConstraint(fields=('run_id', 'path', 'take', 'kind', 'recipient', 'occurrence'), name='outbox_once'),
        ),
        migrations.AddField(
            model_name='recipient',
            name='user',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='decision',
            name='recipient',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runtime.recipient'),
        ),
        migrations.AddField(
            model_name='signal',
            name='wait',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='signals', to='runtime.wait'),
        ),
        migrations.AddConstraint(
            model_name='stepresult',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['succeeded', 'failed', 'skipped'])), name='step_result_state'),
        ),
        migrations.AddField(
            model_name='membership',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='runtime.team'),
        ),
        migrations.AddField(
            model_name='credential',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='credentials', to='runtime.team'),
        ),
        migrations.AddField(
            model_name='version',
            name='created_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='run',
            name='version',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runtime.version'),
        ),
        migrations.AddField(
            model_name='workflow',
            name='created_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='workflow',
            name='live_version',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runtime.version'),
        ),
        migrations.AddField(
            model_name='workflow',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='workflows', to='runtime.team'),
        ),
        migrations.AddField(
            model_name='version',
            name='workflow',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='runtime.workflow'),
        ),
        migrations.AddField(
            model_name='trigger',
            name='workflow',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='triggers', to='runtime.workflow'),
        ),
        migrations.AddField(
            model_name='run',
            name='workflow',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runtime.workflow'),
        ),
        migrations.AddField(
            model_name='recipient',
            name='approval',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recipients', to='runtime.approval'),
        ),
        migrations.AddField(
            model_name='decision',
            name='approval',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='runtime.approval'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(('policy__in', ['any', 'all'])), name='approval_policy'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['subject', '-id'], name='audit_subject'),
        ),
        migrations.AddIndex(
            model_name='dispatch',
            index=models.Index(condition=models.Q(('due_at__isnull', False), ('token__isnull', True)), fields=['due_at'], name='dispatch_due'),
        ),
        migrations.AddIndex(
            model_name='dispatch',
            index=models.Index(condition=models.Q(('token__isnull', False)), fields=['leased_until'], name='dispatch_lease'),
        ),
        migrations.AddIndex(
            model_name='dispatch',
            index=models.Index(condition=models.Q(('lost__gt', 0), ('token__isnull', True)), fields=['lost'], name='dispatch_lost'),
        ),
        migrations.AddConstraint(
            model_name='dispatch',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['ready', 'claimed', 'waiting'])), name='dispatch_state'),
        ),
        migrations.AddConstraint(
            model_name='dispatch',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('leased_until__isnull', False), ('state', 'claimed'), ('token__isnull', False), ('worker_id__isnull', False)), models.Q(models.Q(('state', 'claimed'), _negated=True), ('leased_until__isnull', True), ('token__isnull', True), ('worker_id__isnull', True)), _connector='OR'), name='dispatch_claim'),
        ),
        migrations.AddConstraint(
            model_name='dispatch',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'ready'), _negated=True), ('due_at__isnull', False), _connector='OR'), name='dispatch_ready_is_due'),
        ),
        migrations.AddConstraint(
            model_name='signal',
            constraint=models.UniqueConstraint(fields=('run_id', 'path', 'dedupe'), name='signal_once'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('user', 'team'), name='membership_once'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'builder', 'operator', 'admin'])), name='membership_role'),
        ),
        migrations.AddConstraint(
            model_name='credential',
            constraint=models.UniqueConstraint(fields=('team', 'name'), name='credential_name'),
        ),
        migrations.AddIndex(
            model_name='workflow',
            index=models.Index(fields=['team', '-id'], name='workflow_team'),
        ),
        migrations.AddConstraint(
            model_name='version',
            constraint=models.UniqueConstraint(fields=('workflow', 'number'), name='version_number'),
        ),
        migrations.AddConstraint(
            model_name='version',
            constraint=models.UniqueConstraint(condition=models.Q(('number__isnull', True)), fields=('workflow', 'hash'), name='version_snapshot'),
        ),
        migrations.AddIndex(
            model_name='trigger',
            index=models.Index(condition=models.Q(('enabled', True), ('next_at__isnull', False)), fields=['next_at'], name='trigger_due'),
        ),
        migrations.AddConstraint(
            model_name='trigger',
            constraint=models.UniqueConstraint(fields=('workflow', 'key'), name='trigger_key'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['workflow', '-id'], name='run_workflow'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('state', 'succeeded'), _negated=True), fields=['state', '-id'], name='run_state_id'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['open', 'attention', 'succeeded', 'failed', 'cancelled'])), name='run_state'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state__in', (runtime.states.RunState['OPEN'], runtime.states.RunState['ATTENTION']))), models.Q(models.Q(('state__in', (runtime.states.RunState['OPEN'], runtime.states.RunState['ATTENTION'])), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='run_ended'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('idempotency_key__isnull', False)), fields=('workflow', 'trigger_key', 'idempotency_key'), name='run_idempotency'),
        ),
        migrations.AddConstraint(
            model_name='recipient',
            constraint=models.UniqueConstraint(fields=('approval', 'address'), name='recipient_once'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.CheckConstraint(condition=models.Q(('answer__in', ['approve', 'reject'])), name='decision_answer'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.UniqueConstraint(condition=models.Q(('recipient__isnull', False)), fields=('approval', 'recipient'), name='decision_once'),
        ),
    ]
