-- The ways in. As functions, since a session keeps the plans of a function's statements, also behind a pooler.

-- Count one more of this key, of which one may come in every `each` and a minute's worth at once (`runtime.limits`). 0 when
-- it is within the rate; else it is not counted, and these are the seconds until the next one may come.
create or replace function holdfast_rate(this_key text, each interval) returns float8 language plpgsql as $$
begin
    insert into rate_limit as r (key, until) values (this_key, clock_timestamp() + each)
    on conflict (key) do update set until = holdfast_spent(r.until, interval '1 minute') + each
        where holdfast_spent(r.until, interval '1 minute') + each <= clock_timestamp() + interval '1 minute';
    if found then
        return 0;
    end if;
    return greatest(0.001, (select extract(epoch from until + each - clock_timestamp() - interval '1 minute')::float8
                            from rate_limit where key = this_key));
end $$;

-- The webhook with this token, if it takes requests, with what its flow says to a start; the request is counted (`later`
-- as `holdfast_rate` gives it) unless `each` is null. `seen` tells the state of all rows that this was read from.
-- Its name is not that of the function of the version before, which its web processes go on calling during an upgrade.
create or replace function holdfast_webhook(by_token text, each interval) returns table (
    hook bigint, hook_key text, hook_config jsonb, flow bigint, of_team bigint, of_version bigint, is_paused boolean,
    limits jsonb, seen text, later float8
) language plpgsql as $$
begin
    select t.id, t.key, t.config, w.id, w.team_id, w.live_version_id, w.paused,
           case when l.workflow_id is not null then
               jsonb_build_array(l.at_most, l.per_key, l.key, l.per_minute, l.drops, l.yields, l.priority, l.max_age) end,
           concat_ws(' ', t.xmin, w.xmin, l.xmin)
    into hook, hook_key, hook_config, flow, of_team, of_version, is_paused, limits, seen
    from trigger t join workflow w on w.id = t.workflow_id left join flow_limit l on l.workflow_id = w.id
    where t.token = by_token and t.type = 'webhook' and t.enabled and w.deleted_at is null and w.live_version_id is not null;
    if found then
        later := case when each is null then 0 else holdfast_rate('hook:' || hook, each) end;
        return next;
    end if;
end $$;

-- Make a run and its dispatch row, on the terms of its flow (`slots.Terms`); or find the one that its idempotency key made, which
-- is not `fresh`, and whose hash is `kept`. What its flow drops (`why` is not empty) has ended at once, and leaves its key free.
create or replace function holdfast_start(
    flow bigint, of_version bigint, by_trigger text, by_key text, its_hash text, its_input text, as_test boolean, by_user bigint,
    again bigint, nth int, rank int, slots_of bigint, slots_key text, may_drop boolean, may_yield boolean, longest float8,
    note text, out made bigint, out fresh boolean, out kept text, out why text
) language plpgsql as $$
declare
    begun timestamptz;
begin
    fresh := true;
    -- Looked up first, since a refused insert has used up a number. Of two that look at once, the unique index refuses one.
    if by_key is not null then
        select id, false, input_hash into made, fresh, kept from run
        where idempotency_key = by_key and trigger_key = by_trigger and (workflow_id = flow) is true;
        if found then
            return;
        end if;
        fresh := true;
    end if;
    why := case when may_drop then holdfast_slot(flow, slots_key, by_trigger, by_key) else '' end;
    begun := holdfast_now();
    if why <> '' then
        insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, started_by_id,
                         rerun_of_id, depth, ended_at, error)
        values (flow, of_version, by_trigger, its_hash, its_input::json, 'cancelled', '', as_test, begun, by_user, again, nth, begun,
                jsonb_build_object('message', 'Dropped: ' || why, 'dropped', true))
        returning id into made;
    else
        insert into run (workflow_id, version_id, trigger_key, idempotency_key, input_hash, input, state, title, test, created_at,
                         started_by_id, rerun_of_id, depth)
        values (flow, of_version, by_trigger, by_key, its_hash, its_input::json, 'open', '', as_test, begun, by_user, again, nth)
        on conflict (workflow_id, trigger_key, idempotency_key) where idempotency_key is not null do nothing
        returning id into made;
        if made is null then  -- the other one has committed; unless retention has taken that away since
            select r.made, r.fresh, r.kept, r.why into made, fresh, kept, why from holdfast_start(
                flow, of_version, by_trigger, by_key, its_hash, its_input, as_test, by_user, again, nth, rank, slots_of, slots_key,
                may_drop, may_yield, longest, note
            ) r;
            return;
        end if;
        insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths, priority, queued, slot_of,
                              slot_key, yields, expires_at)
        values (made, of_version, 'ready', begun, 0, 0, 0, false, 0, rank, slots_of is not null and not may_drop, slots_of,
                slots_key, may_yield, begun + make_interval(secs => longest));
    end if;
    if note <> '' then
        insert into log_line (run_id, path, level, text, at) values (made, '', 'warning', note, begun);
    end if;
end $$;

-- Count a request of a webhook, as `holdfast_webhook` does, and start its run, as `holdfast_start` does: two transactions in one
-- statement, so that the count waits for no disk, and no other request waits for a run's commit. `later` is null, and nothing
-- is done, unless the webhook's rows are still as they were `seen`.
create or replace procedure holdfast_post(
    hook bigint, was_seen text, each interval, by_key text, its_hash text, its_input text, rank int, slots_of bigint, slots_key text,
    may_drop boolean, may_yield boolean, longest float8, note text,
    inout later float8, inout made bigint, inout fresh boolean, inout kept text, inout why text
) language plpgsql as $$
declare
    flow bigint;
    of_version bigint;
    by_trigger text;
begin
    select w.id, w.live_version_id, t.key into flow, of_version, by_trigger
    from trigger t join workflow w on w.id = t.workflow_id left join flow_limit l on l.workflow_id = w.id
    where t.id = hook and concat_ws(' ', t.xmin, w.xmin, l.xmin) = was_seen;
    if not found then
        return;
    end if;
    later := 0;
    if each is not null then
        perform set_config('synchronous_commit', 'off', true);
        later := holdfast_rate('hook:' || hook, each);
        if later > 0 then
            return;
        end if;
        commit;
    end if;
    select s.made, s.fresh, s.kept, s.why into made, fresh, kept, why from holdfast_start(
        flow, of_version, by_trigger, by_key, its_hash, its_input, false, null, null, 0, rank, slots_of, slots_key, may_drop, may_yield,
        longest, note
    ) s;
end $$;
