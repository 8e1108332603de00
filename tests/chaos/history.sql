-- What happened to each row, kept by the database itself: a history that no worker writes and none can leave out.
create table chaos_history (
    id bigserial primary key, at timestamptz not null default clock_timestamp(), xid xid8 not null default pg_current_xact_id(),
    kind text not null, key text not null, run_id bigint, was text, now text, more jsonb not null
);

-- The dispatch row and the run's own. Renewals are left out.
create function chaos_of_dispatch() returns trigger language plpgsql as $$
begin
    insert into chaos_history (kind, key, run_id, was, now, more) values (
        'dispatch', coalesce(new.run_id, old.run_id), coalesce(new.run_id, old.run_id), old.state, new.state,
        jsonb_build_object('token', new.token, 'had', old.token, 'worker', coalesce(new.worker_id, old.worker_id),
                           'lost', coalesce(new.lost, 0) > coalesce(old.lost, 0), 'expired', old.leased_until < clock_timestamp()));
    return null;
end $$;
create trigger chaos_dispatch after insert or delete on dispatch for each row execute function chaos_of_dispatch();
create trigger chaos_dispatch_moves after update on dispatch for each row
    when ((old.state, old.token, old.lost) is distinct from (new.state, new.token, new.lost)) execute function chaos_of_dispatch();

create function chaos_of_run() returns trigger language plpgsql as $$
begin
    insert into chaos_history (kind, key, run_id, was, now, more) values ('run', new.id, new.id, old.state, new.state,
                                                                              jsonb_build_object('error', new.error));
    return null;
end $$;
create trigger chaos_run after insert on run for each row execute function chaos_of_run();
create trigger chaos_run_moves after update on run for each row when (old.state is distinct from new.state)
    execute function chaos_of_run();

-- What a step leaves, with the token that held the run at that moment beside the one that it was written under.
create function chaos_of_step() returns trigger language plpgsql as $$
declare row jsonb := to_jsonb(coalesce(new, old));
begin
    insert into chaos_history (kind, key, run_id, was, now, more) values (
        tg_table_name, row->>'path' || '#' || (row->>'take') || coalesce('#' || (row->>'n'), ''), (row->>'run_id')::bigint,
        case when tg_op <> 'INSERT' then coalesce(to_jsonb(old)->>'outcome', to_jsonb(old)->>'state', 'open') end,
        case when tg_op <> 'DELETE' then coalesce(to_jsonb(new)->>'outcome', to_jsonb(new)->>'state', 'open') end,
        jsonb_build_object('path', row->'path', 'take', row->'take', 'n', row->'n', 'operation', row->'operation',
            'token', row->'token', 'key', row->'request'->'headers'->'Idempotency-Key', 'error', row->'error',
            'holder', (select token from dispatch where run_id = (row->>'run_id')::bigint)));
    return null;
end $$;
create trigger chaos_attempt after insert or update or delete on attempt for each row execute function chaos_of_step();
create trigger chaos_result after insert or update or delete on step_result for each row execute function chaos_of_step();

create function chaos_of_wait() returns trigger language plpgsql as $$
begin
    insert into chaos_history (kind, key, run_id, was, now, more) values (
        'wait', new.id, new.run_id, old.state, new.state,
        jsonb_build_object('kind', new.kind, 'path', new.path, 'take', new.take, 'n', new.n, 'data', new.data,
            'after', extract(epoch from new.due_at - new.created_at), 'by', new.outcome->>'by', 'answer', new.outcome->>'answer',
            'early', new.outcome->>'by' = 'due' and new.resolved_at < new.due_at));
    return null;
end $$;
create trigger chaos_wait after insert on wait for each row execute function chaos_of_wait();
create trigger chaos_wait_moves after update on wait for each row when (old.state is distinct from new.state)
    execute function chaos_of_wait();

create function chaos_of_mail() returns trigger language plpgsql as $$
begin
    insert into chaos_history (kind, key, run_id, was, now, more) values ('outbox', new.id, new.run_id, old.state, new.state, '{}');
    return null;
end $$;
create trigger chaos_mail after insert on outbox for each row execute function chaos_of_mail();
create trigger chaos_mail_moves after update on outbox for each row when (old.state is distinct from new.state)
    execute function chaos_of_mail();
