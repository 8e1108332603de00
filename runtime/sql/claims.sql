-- Claim at most `most` due runs for a worker, those of higher priority first, then the oldest, leaving versions that it cannot run
-- to others: those that lost no worker or, when `least_lost` is more than 0, those that lost from so many to `most_lost` in a row.
--
-- A look into the index for each priority, for waiting runs stand in it too; who queues for a slot does not. What a claimed run
-- waited for until now is over with it: found by the run, never by the time, for which a backlog would be read through. But a
-- callback: a signal of its name may have come in time, and its walk looks for that first.
--
-- A look begins after the place that it is given for each priority (`looks.py`): the nineteen from -9 to 9 in this order, none
-- where an array is shorter.
--
-- A function, so that its plans are kept and go by keys, whatever the statistics make of tables that grow by the minute: a plan
-- for what is usual would rather read ten thousand runs than look for five hundred.
create or replace function holdfast_claim(
    this_worker bigint, most int, lease float8, unable bigint[], least_lost int, most_lost int, by_itself boolean,
    after_due timestamptz[], after_run bigint[]
) returns table (
    at timestamptz, its_token bigint, its_wakes int, times int, version bigint, its_level int, was_due timestamptz, its_id bigint,
    flow bigint, given json, called text, as_test boolean, made_at timestamptz, begun_at timestamptz
) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
declare
    due bigint[];
begin
    if least_lost = 0 then
        due := array(
            select d.run_id from generate_series(9, -9, -1) as level cross join lateral (  -- slots.LEVELS
                select run_id from dispatch
                where priority = level and token is null and due_at <= (select holdfast_now()) and not queued and lost = 0
                  and version_id <> all(unable)
                  and (due_at, run_id) > (coalesce(after_due[level + 10], '-infinity'), coalesce(after_run[level + 10], 0))
                order by due_at, run_id limit most for no key update skip locked
            ) d limit most
        );
    else
        -- Those that lost a worker are few, and have an index of their own.
        due := array(
            select run_id from dispatch
            where run_id = any(array(select run_id from dispatch where token is null and lost > 0 and lost between least_lost and most_lost))
              and token is null and lost between least_lost and most_lost and due_at <= (select holdfast_now())
              and not queued and version_id <> all(unable)
            order by priority desc, due_at limit most for no key update skip locked
        );
    end if;
    if due = '{}' then
        return;
    end if;
    return query
    with claimed as (
        update dispatch d set state = 'claimed', token = nextval('claim_token'), worker_id = this_worker, alone = by_itself,
            leased_until = clock_timestamp() + make_interval(secs => lease), claims = claims + 1
        where d.run_id = any(due)
        returning d.run_id, d.token, d.wakes, d.claims, d.version_id, d.priority, d.due_at
    ), over as (
        update wait w set state = 'resolved', resolved_at = holdfast_now(),
            outcome = json_build_object('by', 'due', 'at', w.due_at)
        where w.run_id = any(array(select run_id from claimed where claims > 1))
          and w.state = 'open' and w.kind <> 'callback' and w.due_at - (select holdfast_now()) <= interval '0'
    )
    select (select holdfast_now()), c.token, c.wakes, c.claims, c.version_id, c.priority::int, c.due_at, r.id, r.workflow_id, r.input,
           r.title::text, r.test, r.created_at, r.started_at
    from claimed c join run r on r.id = c.run_id;
end $$;
