"""The journal's statements: one per kind of row, in the order in which a batch sends them.

Each takes its rows as arrays, one per column, and writes them all at once. Where a statement returns rows, they begin
with the run's id, and `again` asks for the same when the first reply was lost.

Plans are kept, also those that were made while a table was empty, for which going through a whole index costs as little as
looking into it once for each row. So the rows that are there are joined by `= any(array[...])`, which only a look by key answers;
`(...) is true` and `+ 0` keep indexes out that know no key (those of the open, the leased, the oldest rows). An index of some rows
alone may be gone through whole in a join; in `lateral (... offset 0)`, which is asked for one row at a time, it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .quarantine import ASK

STALE_CLAIM = "HF001"
STALE_CONNECTION = "HF002"
NUMBERS = {"bigint", "int", "float8", "numeric"}


@dataclass(frozen=True, slots=True)
class Statement:
    """`types` are the array types of the columns, in the order of the row tuples."""

    types: str
    body: str
    again_body: str = ""
    last_of: int = 0
    """How many leading columns are a key of which only the last row counts."""
    large: tuple[int, ...] = ()
    """The places of columns whose values may be long."""

    @property
    def returns(self) -> bool:
        return bool(self.again_body)

    @property
    def sql(self) -> str:
        return self.body.format(rows=self._rows())

    @property
    def again(self) -> str:
        return self.again_body.format(rows=self._rows())

    def _rows(self) -> str:
        return "unnest(" + ", ".join(f"%s::{name}[]" for name in self.types.split()) + ")"

    def columns(self, rows: list[tuple[Any, ...]]) -> list[str]:
        """The rows as one array literal per column."""
        if self.last_of:
            rows = list({row[: self.last_of]: row for row in rows}.values())
        kinds = self.types.split()
        return [_literal(column, kind in NUMBERS) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]


def _literal(column: tuple[Any, ...], numbers: bool) -> str:
    """A Postgres array literal (manual, 8.15.2), made by whole-column string operations: a driver that asks each element
    its type takes several times as long."""
    if None in column:
        return "{" + ",".join(["NULL" if value is None else _element(value, numbers) for value in column]) + "}"
    if numbers:
        return "{" + ",".join(map(str, column)) + "}"
    # NUL can stand in no text that Postgres stores, so it marks the borders while quotes are escaped.
    return '{"' + _escaped("\0".join(map(str, column))).replace("\0", '","') + '"}'


def _element(value: Any, number: bool) -> str:
    return str(value) if number else f'"{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


SETTLE = """
update attempt a set outcome = r.outcome, response = r.response::json, error = r.error, cost = r.cost,
    tokens_in = r.tokens_in, tokens_out = r.tokens_out, ended_at = holdfast_now()
from {{rows}} as r(run_id, scope, path, take, n, outcome, response, error, cost, tokens_in, tokens_out{column})
where a.run_id = any(array[r.run_id]) and a.scope = r.scope and a.path = r.path and a.take = r.take and a.n = r.n
  and a.outcome is null{condition}"""
SETTLE_COLUMNS = "bigint text text int int text text text numeric int int"
# By an owner that lost its claim, whose token comes last: of its own calls it knows how they ended, of others it knows nothing.
SETTLE_OWN = Statement(f"{SETTLE_COLUMNS} bigint", SETTLE.format(column=", token", condition=" and (a.token = r.token) is true"))
ROWS: dict[str, Statement] = {
    # A call is about to be made.
    "attempt": Statement("bigint text text int int text bigint text", """
insert into attempt (run_id, scope, path, take, n, operation, token, request, started_at)
select run_id, scope, path, take, n, operation, token, request::json, holdfast_now()
from {rows} as r(run_id, scope, path, take, n, operation, token, request)""", large=(7,)),
    # How a call ended. The first word counts.
    "settle": Statement(SETTLE_COLUMNS, SETTLE.format(column="", condition="")),
    # What a step gave that is too large for its row. Its last owner may have written it and died before the row.
    "blob": Statement("bigint text int text", """
insert into blob (run_id, path, take, content) select run_id, path, take, content from {rows} as r(run_id, path, take, content)
on conflict (run_id, path, take) do update set content = excluded.content""", last_of=3, large=(3,)),
    # A file that a step gave; its output names it.
    "file": Statement("bigint text int text text", """
insert into step_file (run_id, path, take, key, content)
select run_id, path, take, key, decode(content, 'base64') from {rows} as r(run_id, path, take, key, content)""", large=(4,)),
    # What a step gave.
    "result": Statement("bigint text text int text text text text text bigint numeric timestamptz int", """
insert into step_result (run_id, scope, path, take, step, state, input, output, error, token, cost, started_at, finished_at,
                         superseded, output_size)
select run_id, scope, path, take, step, state, input::json, output::json, error::jsonb, token, cost, started_at,
       holdfast_now(), false, output_size
from {rows} as r(run_id, scope, path, take, step, state, input, output, error, token, cost, started_at, output_size)""", large=(6, 7)),
    "log": Statement("bigint text text text text", """
insert into log_line (run_id, path, level, text, data, at)
select run_id, path, level, text, data::json, holdfast_now()
from {rows} as r(run_id, path, level, text, data)"""),
    # Where a loop or a parallel stands.
    "frame": Statement("bigint text int text int int text int int", """
insert into frame (run_id, path, take, kind, total, cursor, open, succeeded, failed, started_at)
select run_id, path, take, kind, total, place, open::jsonb, succeeded, failed, holdfast_now()
from {rows} as r(run_id, path, take, kind, total, place, open, succeeded, failed)
on conflict (run_id, path, take) do update set total = excluded.total, cursor = excluded.cursor, open = excluded.open,
    succeeded = excluded.succeeded, failed = excluded.failed""", last_of=3),
    "unframe": Statement("bigint text int", """
delete from frame f using {rows} as r(run_id, path, take)
where f.run_id = any(array[r.run_id]) and f.path = r.path and f.take = r.take"""),
    # A container failed and that is handled: its lanes wait for nothing any more. Comes before the waits and after the
    # frames, for those of the error lane may be in the same batch, those of the lanes cannot.
    "abandon": Statement("bigint text", """
with r as materialized (select run_id, path, path || '/on_error/' as beside from {rows} as r(run_id, path)), opens as (
    select r.run_id, w.id, w.kind, not starts_with(w.path, r.beside)
        and (starts_with(w.path, r.path || '/') or starts_with(w.path, r.path || '[')) as inside
    from r, lateral (select id, kind, path from wait where run_id = r.run_id and state = 'open' offset 0) w
), waits as (
    update wait w set state = 'cancelled' from opens o where o.inside and w.id = any(array[o.id]) and (w.state = 'open') is true
    returning w.id, w.run_id, w.kind
), orphans as (
    insert into run_end (run_id, wait_id) select run_id, id from waits where kind = 'child'
), attended as (
    update run set state = 'open' from r
    where run.id = any(array[r.run_id]) and (run.state = 'attention') is true and not exists (
        select from opens o where o.run_id = r.run_id and o.kind = 'person' group by o.id having not bool_or(o.inside))
)
delete from frame f using r where f.run_id = any(array[r.run_id]) and not starts_with(f.path, r.beside)
  and (f.path = r.path or starts_with(f.path, r.path || '/') or starts_with(f.path, r.path || '['))"""),
    # A hundred items of a loop.
    "chunk": Statement("bigint text int int text", """
insert into frame_chunk (run_id, path, take, n, items)
select run_id, path, take, n, items::json from {rows} as r(run_id, path, take, n, items)""", large=(4,)),
    # What one iteration gave to `collect`. Its last owner may have written it and died before the frame's next row.
    "value": Statement("bigint text int int text", """
insert into frame_value (run_id, path, take, index, value)
select run_id, path, take, index, value::json from {rows} as r(run_id, path, take, index, value)
on conflict do nothing""", large=(4,)),
    # A step parks. The due time is reckoned by business time, from the moment that the row names.
    "wait": Statement("bigint text text int text int float8 timestamptz text", """
insert into wait (run_id, scope, path, take, kind, n, state, due_at, data, created_at)
select run_id, scope, path, take, kind, n, 'open', coalesce(until, moment + make_interval(secs => after)), data::json, moment
from (select holdfast_now() as moment) now, {rows} as r(run_id, scope, path, take, kind, n, after, until, data)
returning run_id, id, path, take, kind, n, state, outcome, due_at""", """
select w.run_id, w.id, w.path, w.take, w.kind, w.n, w.state, w.outcome, w.due_at
from wait w join {rows} as r(run_id, scope, path, take, kind, n, after, until, data)
  on w.run_id = any(array[r.run_id]) and (w.scope, w.path, w.take, w.kind, w.n) = (r.scope, r.path, r.take, r.kind, r.n)"""),
    # A callback takes the signal that came before it.
    "early": Statement("bigint text text", """
with kept as (
    select s.id, w.id as wait_id, s.payload
    from {rows} as r(run_id, scope, path)
    join wait w on w.run_id = any(array[r.run_id]) and w.scope = r.scope and w.path = r.path
        and (w.kind = 'callback' and w.state = 'open') is true
    join lateral (
        select id, payload from signal s where s.run_id = r.run_id and s.path = r.path and (s.wait_id is null) is true
        order by id + 0 limit 1
    ) s on true
), taken as (
    update signal s set wait_id = kept.wait_id from kept where s.id = any(array[kept.id])
)
update wait w set state = 'resolved', resolved_at = holdfast_now(),
    outcome = json_build_object('by', 'signal', 'payload', kept.payload)
from kept where w.id = any(array[kept.wait_id]) returning w.run_id, w.id, w.outcome""", """
select w.run_id, w.id, w.outcome from wait w
join {rows} as r(run_id, scope, path) on w.run_id = any(array[r.run_id]) and w.scope = r.scope and w.path = r.path
where (w.kind = 'callback' and w.state = 'resolved') is true"""),
    # A callback takes the signal of its name and key that came before it. Its wait is committed already.
    "named": Statement("bigint bigint bigint text text", """
with kept as (
    select distinct on (s.id) s.id, w.id as wait_id from {rows} as r(run_id, wait_id, team_id, name, key)
    join wait w on w.id = any(array[r.wait_id]) and (w.state = 'open') is true join run on run.id = any(array[r.run_id])
    join lateral (
        select id from named_signal s
        where s.team_id = r.team_id and s.name = r.name and s.key = r.key and s.test = run.test and s.wait_id is null
          and s.received_at > (select holdfast_now()) - interval '30 days'  -- signals.KEPT_DAYS
        order by id + 0 limit 1
    ) s on true
    order by s.id, w.id
), taken as (
    update named_signal s set wait_id = kept.wait_id from kept where s.id = any(array[kept.id]) and s.wait_id is null
    returning s.wait_id, s.payload
)
update wait w set state = 'resolved', resolved_at = holdfast_now(),
    outcome = json_build_object('by', 'signal', 'payload', taken.payload)
from taken where w.id = any(array[taken.wait_id]) and (w.state = 'open') is true returning w.run_id, w.id, w.outcome""", """
select w.run_id, w.id, w.outcome from wait w join {rows} as r(run_id, wait_id, team_id, name, key) on w.id = any(array[r.wait_id])
where w.state = 'resolved'"""),
    # A sub-flow's run, once for each key.
    "child": Statement("bigint text bigint bigint text text bool int int bigint text bool bool float8", """
with r as materialized (
    select *, case when drops then holdfast_slot(
        workflow_id, slot_key, 'sub-flow', key, row_number() over (partition by workflow_id) - 1,
        row_number() over (partition by workflow_id, slot_key) - 1) else '' end as dropped
    from {rows} as r(run_id, path, workflow_id, version_id, key, input, test, depth,
                     priority, slot_of, slot_key, drops, yields, max_age)
), fresh as (
    insert into run (workflow_id, version_id, trigger_key, idempotency_key, input_hash, input, state, title, test, created_at,
                     parent_id, depth, ended_at, error)
    select r.workflow_id, r.version_id, 'sub-flow', r.key, '', r.input::json,
           case dropped when '' then 'open' else 'cancelled' end, '', r.test, holdfast_now(), r.run_id, r.depth,
           case when dropped <> '' then holdfast_now() end,
           case when dropped <> '' then jsonb_build_object('message', 'Dropped: ' || dropped, 'dropped', true) end
    from r
    on conflict (workflow_id, trigger_key, idempotency_key) where idempotency_key is not null do nothing
    returning id, version_id, idempotency_key, created_at, parent_id, state
), begun as (
    insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths,
                          priority, queued, slot_of, slot_key, yields, expires_at)
    select id, fresh.version_id, 'ready', created_at, 0, 0, 0, false, 0,
           r.priority, r.slot_of is not null and not r.drops, r.slot_of, r.slot_key, r.yields,
           created_at + make_interval(secs => r.max_age)
    from fresh join r on r.run_id = fresh.parent_id and r.key = fresh.idempotency_key where fresh.state = 'open'
)
select r.run_id, r.path, coalesce(fresh.id, old.id) from r
left join fresh on fresh.parent_id = r.run_id and fresh.idempotency_key = r.key
left join lateral (
    select id from run
    where idempotency_key = r.key and trigger_key = 'sub-flow' and (workflow_id = r.workflow_id) is true offset 0
) old on true""", """
select r.run_id, r.path, old.id
from {rows} as r(run_id, path, workflow_id, version_id, key, input, test, depth,
                 priority, slot_of, slot_key, drops, yields, max_age),
lateral (
    select id from run
    where idempotency_key = r.key and trigger_key = 'sub-flow' and (workflow_id = r.workflow_id) is true offset 0
) old""", large=(5,)),
    # A run that is waited for has ended before the wait was there.
    "childend": Statement("bigint bigint bigint", """
update wait w set state = 'resolved', resolved_at = holdfast_now(), outcome = json_build_object('by', 'child', 'run', c.id,
    'state', c.state, 'output', c.output, 'message', coalesce(c.error ->> 'message', ''))
from {rows} as r(run_id, wait_id, child_id) join run c on c.id = any(array[r.child_id]) and c.state in ('succeeded', 'failed', 'cancelled')
where w.id = any(array[r.wait_id]) and (w.state = 'open') is true returning w.run_id, w.id, w.outcome""", """
select w.run_id, w.id, w.outcome from wait w join {rows} as r(run_id, wait_id, child_id) on w.id = any(array[r.wait_id])
where w.state = 'resolved'"""),
    # The question of an approval.
    "approval": Statement("bigint text text int int text text text text text text int text text float8", """
insert into approval
    (wait_id, run_id, subject, message, details, form, effects, policy, needed, on_expired, rules, stage, next_at)
select w.id, r.run_id, r.subject, r.message, r.details::json, r.form::json, r.effects::json, r.policy, r.needed, r.on_expired,
       r.rules::json, 1, w.created_at + make_interval(secs => r.after)
from {rows} as r(run_id, scope, path, take, n, subject, message, details, form, effects, policy, needed, on_expired, rules, after)
join wait w on w.run_id = any(array[r.run_id]) and w.scope = r.scope and w.path = r.path and w.take = r.take and w.n = r.n
    and (w.kind = 'approval') is true"""),
    # Those who may answer it.
    "recipient": Statement("bigint text text int int text text text text bigint int bool bool", """
insert into recipient (approval_id, address, nonce, key_id, token_hash, user_id, stage, asked_at, standby, handed_to)
select w.id, r.address, r.nonce, r.key_id, r.token_hash, r.account, r.stage,
       case when r.asked then w.created_at end, r.standby, ''
from {rows} as r(run_id, scope, path, take, n, address, nonce, key_id, token_hash, account, stage, asked, standby)
join wait w on w.run_id = any(array[r.run_id]) and w.scope = r.scope and w.path = r.path and w.take = r.take and w.n = r.n
    and (w.kind = 'approval') is true"""),
    # Mails, at most one per occurrence.
    "mail": Statement("bigint text int text text int text text", """
insert into outbox (run_id, path, take, kind, recipient, occurrence, message_id, payload, state, attempts, due_at, error, created_at)
select run_id, path, take, kind, recipient, occurrence, message_id, payload::jsonb, 'queued', 0, holdfast_now(), '', holdfast_now()
from {rows} as r(run_id, path, take, kind, recipient, occurrence, message_id, payload)
on conflict (run_id, path, take, kind, recipient, occurrence) do nothing"""),
    # Waits whose time has come, while their run is held.
    "due": Statement("bigint bigint", """
update wait w set state = 'resolved', resolved_at = holdfast_now(),
    outcome = json_build_object('by', 'due', 'at', w.due_at)
from {rows} as r(run_id, id) where w.id = any(array[r.id]) and (w.state = 'open') is true and w.due_at <= (select holdfast_now())
returning w.run_id, w.id, w.outcome""", """
select w.run_id, w.id, w.outcome from wait w join {rows} as r(run_id, id) on w.id = any(array[r.id]) where w.state = 'resolved'"""),
    # How the run is called in lists, and that it has begun.
    "title": Statement("bigint text timestamptz", """
update run set title = r.title, started_at = coalesce(run.started_at, r.started_at)
from {rows} as r(run_id, title, started_at) where run.id = any(array[r.run_id])"""),
    # What it can be found by.
    "found_by": Statement("bigint text", """
insert into run_search (run_id, value) select run_id, value from {rows} as r(run_id, value) on conflict do nothing"""),
    # A person has to look at it.
    "attention": Statement("bigint", """
update run set state = 'attention' from {rows} as r(run_id) where run.id = any(array[r.run_id]) and (run.state = 'open') is true"""),
    # Everything that can be done now is done; the next due wait calls for the run again. Where its flow says so, a run
    # that waits gives its slot up, except between two attempts of a call.
    "release": Statement("bigint bigint int", """
update dispatch d set state = 'waiting', token = null, worker_id = null, leased_until = null,
    lost = 0, deaths = 0, alone = false,
    queued = d.yields and not exists (
        select from wait w where w.run_id = d.run_id and w.state = 'open' and (w.kind = 'retry') is true),
    due_at = (select min(w.due_at + interval '0') from wait w where w.run_id = d.run_id and w.state = 'open')
from {rows} as r(run_id, token, wakes) where d.run_id = any(array[r.run_id]) and (d.token = r.token) is true and d.wakes = r.wakes
returning d.run_id, d.due_at""", """
select d.run_id, d.due_at from dispatch d join {rows} as r(run_id, token, wakes) on d.run_id = any(array[r.run_id])
where d.token is distinct from r.token"""),
    # The worker stops: somebody else may go on at once.
    "handback": Statement("bigint bigint", """
update dispatch d set state = 'ready', token = null, worker_id = null, leased_until = null,
    due_at = least(d.due_at, holdfast_now())
from {rows} as r(run_id, token) where d.run_id = any(array[r.run_id]) and (d.token = r.token) is true"""),
    # The end. Open waits go with it: suspended by a failure, from which a requeue restores them, else cancelled.
    "end": Statement("bigint bigint text text text text timestamptz text", """
with closed as (
    delete from dispatch d using {rows} as r(run_id, token, state, output, error, title, started_at, failure_flow)
    where d.run_id = any(array[r.run_id]) and (d.token = r.token) is true
    returning r.*
), followed as (
    insert into run_end (run_id, failure_flow)
    select c.run_id, case c.state when 'failed' then c.failure_flow else '' end from closed c join run on run.id = any(array[c.run_id])
    where run.parent_id is not null or c.state = 'failed' and c.failure_flow <> ''
       or exists (select from trigger where type = 'ended' and enabled)
)
update run set state = closed.state, output = closed.output::json, error = closed.error::jsonb, title = closed.title,
    started_at = coalesce(run.started_at, closed.started_at), ended_at = holdfast_now()
from closed where run.id = any(array[closed.run_id])""", large=(3,)),
    # The end was refused, and will be: nobody takes the run up until a person says so.
    "park": Statement("bigint bigint text", f"""
with parked as (
    update dispatch d set state = 'waiting', token = null, worker_id = null, leased_until = null, due_at = null,
        lost = 0, deaths = 0, alone = false
    from {{rows}} as r(run_id, token, why) where d.run_id = any(array[r.run_id]) and (d.token = r.token) is true
    returning d.run_id, null::int as deaths, r.why
), {ASK}"""),
    "unwait": Statement("bigint text", """
with dropped as (
    update wait w set state = r.state
    from {rows} as r(run_id, state), lateral (select id from wait where run_id = r.run_id and state = 'open' offset 0) o
    where w.id = any(array[o.id]) and (w.state = 'open') is true
    returning w.run_id, w.id, w.kind, w.state
)
insert into run_end (run_id, wait_id) select run_id, id from dropped where kind = 'child' and state = 'cancelled'"""),
    # What calls cost since the last release; no run costs more than its column holds, or it could not end.
    "spent": Statement("bigint numeric", """
update run set cost = least(coalesce(run.cost, 0) + r.cost, 999999) from {rows} as r(run_id, cost) where run.id = any(array[r.run_id])"""),
    # What all calls of the run cost, reckoned once, at its end.
    "cost": Statement("bigint", """
update run set cost = (select least(sum(cost), 999999) from (
    select a.cost from attempt a where a.run_id = run.id union all select c.cost from run c where c.parent_id = run.id) spent)
from {rows} as r(run_id) where run.id = any(array[r.run_id])"""),
}
LARGE = {kind: statement.large for kind, statement in ROWS.items() if statement.large}
