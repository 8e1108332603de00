-- The limits of flows. A dispatch row that is not queued is a slot of its flow, and goes with the run: none can be lost.

-- Until when a rate is used up, of which so much may come at once. What is further away than that is by a clock that leapt back
-- since, and counts for nothing: else nothing would be let in for as long as it leapt.
create or replace function holdfast_spent(until timestamptz, at_once interval) returns timestamptz language sql volatile as $$
    select greatest(clock_timestamp(), case when until <= clock_timestamp() + 2 * at_once then until end)
$$;

-- Why a run of this flow with this key cannot begin now, in words for people; empty when it can. `more` runs of the flow,
-- and `more_of_key` of the key, are about to begin before it.
create or replace function holdfast_full(
    flow bigint, this_key text, more bigint default 0, more_of_key bigint default 0
) returns text language plpgsql as $$
declare
    allowed flow_limit;
    held bigint;
begin
    select * into allowed from flow_limit where workflow_id = flow;
    if allowed.at_most is not null then
        -- Those that gave their slot up and want it back come before new ones.
        select more + count(*) into held from dispatch where slot_of = flow and not queued;
        held := held + (select count(*) from (select from dispatch where allowed.drops and slot_of = flow and queued
                                              and due_at <= (select holdfast_now()) limit allowed.at_most) d);
        if held >= allowed.at_most then
            return format('At most %s of this flow''s runs go on at a time.', allowed.at_most);
        end if;
    end if;
    if allowed.per_key is not null then
        select more_of_key + count(*) into held from dispatch
        where slot_of = flow and not queued and slot_key = this_key;
        if held >= allowed.per_key then
            return format('At most %s of this flow''s runs with the key “%s” go on at a time.',
                          allowed.per_key, this_key);
        end if;
    end if;
    if allowed.per_minute is not null and holdfast_starts_left(flow, allowed.per_minute) < 1 then
        return format('At most %s of this flow''s runs begin in a minute.', allowed.per_minute);
    end if;
    return '';
end $$;

-- How many runs may begin at once by the rate (`runtime.limits`): a minute's worth at first, then evenly.
create or replace function holdfast_starts_left(flow bigint, per_minute int) returns int language sql as $$
    select floor(extract(epoch from clock_timestamp() + interval '1 minute' - holdfast_spent(max(until), interval '1 minute'))
                 * per_minute / 60 + 1e-6)::int
    from rate_limit where key = 'flow:' || flow
$$;

create or replace function holdfast_count_starts(flow bigint, per_minute int, begun int) returns void language sql as $$
    insert into rate_limit as r (key, until)
    values ('flow:' || flow, clock_timestamp() + make_interval(secs => begun * 60.0 / per_minute))
    on conflict (key) do update
    set until = holdfast_spent(r.until, interval '1 minute') + make_interval(secs => begun * 60.0 / per_minute)
$$;

-- For a start of a flow that drops what is too much: its slot, held until the end of the transaction in which the run
-- is made, or why there is none. A start that came before is not dropped: it is found by its key.
create or replace function holdfast_slot(
    flow bigint, this_key text, by_trigger text, by_key text, more bigint default 0, more_of_key bigint default 0
) returns text language plpgsql as $$
declare
    allowed flow_limit;
    why text;
begin
    perform set_config('idle_in_transaction_session_timeout', '10s', true);
    -- The flow before its limit, as publishing does; the run's foreign key would lock it later.
    perform from workflow where id = flow for key share;
    select * into allowed from flow_limit where workflow_id = flow for no key update;
    if exists (
        select from run where idempotency_key = by_key and trigger_key = by_trigger and (workflow_id = flow) is true
    ) then
        return '';
    end if;
    why := holdfast_full(flow, this_key, more, more_of_key);
    if why = '' and allowed.per_minute is not null then
        perform holdfast_count_starts(flow, allowed.per_minute, 1);
    end if;
    return why;
end $$;

-- Give a flow's free slots to the runs that queue for them, by priority, then by age; 500 at most. Returns how many.
create or replace function holdfast_admit(flow bigint) returns int language plpgsql as $$
declare
    allowed flow_limit;
    free int;
    starts int := 500;
    begun int := 0;
    admitted int := 0;
    now_ timestamptz;
    next_one record;
begin
    select * into allowed from flow_limit where workflow_id = flow for no key update;
    now_ := holdfast_now();
    free := 500;
    if allowed.at_most is not null then
        select least(free, allowed.at_most - count(*)) into free from dispatch where slot_of = flow and not queued;
    end if;
    if allowed.per_minute is not null then
        starts := least(500, holdfast_starts_left(flow, allowed.per_minute));
    end if;
    if free < 1 or starts < 1 and not allowed.yields then
        return 0;
    end if;
    for next_one in
        with recursive keys as (
            (select slot_key from dispatch where slot_of = flow and queued order by slot_key limit 1)
            union all
            select (select d.slot_key from dispatch d where d.slot_of = flow and d.queued and d.slot_key > keys.slot_key
                    order by d.slot_key limit 1)
            from keys where keys.slot_key is not null
        )
        -- For each key and priority a look into the index: runs that wait without a slot stand there too, unread.
        select d.run_id, d.claims from keys cross join lateral (
            select case when allowed.per_key is null then free else allowed.per_key - (
                select count(*) from dispatch where slot_of = flow and not queued and slot_key = keys.slot_key
            ) end as room
        ) k cross join lateral (
            select one.* from generate_series(9, -9, -1) as level cross join lateral (
                select run_id, claims, priority, due_at from dispatch
                where slot_of = flow and queued and slot_key = keys.slot_key and priority = level and due_at <= now_
                  and (starts > 0 or claims > 0)
                order by due_at limit least(free, k.room)
            ) one limit least(free, k.room)
        ) d where keys.slot_key is not null and k.room > 0
        order by d.priority desc, d.due_at, d.run_id limit free
    loop
        continue when next_one.claims = 0 and begun >= starts;
        -- A run in somebody's hands, who cancels it perhaps, is passed over.
        perform from dispatch where run_id = next_one.run_id and queued for no key update skip locked;
        continue when not found;
        update dispatch set queued = false where run_id = next_one.run_id;
        admitted := admitted + 1;
        begun := begun + (next_one.claims = 0)::int;
    end loop;
    if begun > 0 and allowed.per_minute is not null then
        perform holdfast_count_starts(flow, allowed.per_minute, begun);
    end if;
    return admitted;
end $$;
