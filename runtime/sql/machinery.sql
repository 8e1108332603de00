-- Claim tokens: one sequence for all runs, so that a row made anew never honours an old token.
create sequence if not exists claim_token cache 100;

-- Hot rows: room on the page, so that a claim or a settlement stays a heap-only update.
alter table dispatch set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000,
                          autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 20000);
alter table attempt set (fillfactor = 70);
alter table frame set (fillfactor = 50);
alter table journal_mark set (fillfactor = 10);
alter table worker set (fillfactor = 50);

-- The journal's first statement: lock the runs of a batch, in order, and refuse the whole batch unless every claim in
-- it still holds and the batch was sent by the worker's present connection.
create or replace function holdfast_guard(runs bigint[], tokens bigint[], this_worker bigint, this_epoch int, this_batch bigint)
returns void language plpgsql as $$
declare held int;
begin
    update journal_mark set batch = this_batch where worker_id = this_worker and epoch = this_epoch;
    if not found then raise exception 'stale connection' using errcode = 'HF002'; end if;
    -- What follows in this transaction finds its few rows by their keys, whatever the statistics make of a table that grew
    -- since they were gathered.
    perform set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
            set_config('enable_mergejoin', 'off', true),
            -- A worker that is stopped or cut off in here must not keep its runs from everybody else.
            set_config('idle_in_transaction_session_timeout', '10s', true);
    perform 1 from unnest(runs, tokens) as mine(run_id, token) join dispatch d
        on d.run_id = any(array[mine.run_id]) and (d.token = mine.token) is true
        order by mine.run_id for no key update of d;
    get diagnostics held = row_count;
    if held <> cardinality(runs) then raise exception 'stale claim' using errcode = 'HF001'; end if;
end $$;

-- A published version never changes, and none goes while a run is pinned to it.
create or replace function version_is_immutable() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        if exists (select from run where version_id = old.id) then
            raise exception 'version % is needed by runs and cannot be deleted', old.id using errcode = 'HF010';
        end if;
        return old;
    end if;
    if (old.workflow_id, old.number, old.format, old.hash) is distinct from (new.workflow_id, new.number, new.format, new.hash)
       or old.definition::text is distinct from new.definition::text then
        raise exception 'version % is published and cannot be changed', old.id using errcode = 'HF010';
    end if;
    return new;
end $$;
create or replace trigger version_immutable before update or delete on version for each row execute function version_is_immutable();

-- The audit trail only grows.
create or replace function append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the audit trail is append-only' using errcode = 'HF011';
end $$;
create or replace trigger audit_append_only before update or delete on audit for each row execute function append_only();
create or replace trigger audit_no_truncate before truncate on audit for each statement execute function append_only();

-- A run leaves a final state only by requeue, and never from a success or a cancel. It ends with nothing left to claim: its
-- dispatch row goes before, or in the same statement.
create or replace function run_moves() returns trigger language plpgsql as $$
begin
    if old.state in ('succeeded', 'cancelled') or (old.state = 'failed' and new.state <> 'open') then
        raise exception 'run % cannot go from % to %', old.id, old.state, new.state using errcode = 'HF012';
    end if;
    if new.state in ('succeeded', 'failed', 'cancelled') and exists (select from dispatch where run_id = new.id) then
        raise exception 'run % cannot end while it has a dispatch row', new.id using errcode = 'HF013';
    end if;
    return null;
end $$;
drop trigger if exists run_moves on run;
create trigger run_moves after update of state on run for each row
    when (old.state is distinct from new.state) execute function run_moves();

-- What is finished is not run again, and what is not finished does not go. Tables are found by the path of now, for a restore of
-- data into tables that are there (`pg_restore --data-only`) has none.
create or replace function only_unfinished() returns trigger language plpgsql set search_path from current as $$
begin
    if exists (select from run where id = new.run_id and state not in ('open', 'attention')) then
        raise exception 'run % has ended and cannot be dispatched', new.run_id using errcode = 'HF013';
    end if;
    return null;
end $$;
create or replace trigger dispatch_unfinished after insert or update of run_id on dispatch for each row execute function only_unfinished();

create or replace function unfinished_stays() returns trigger language plpgsql as $$
begin
    raise exception 'run % has not ended and cannot be deleted', old.id using errcode = 'HF013';
end $$;
create or replace trigger run_unfinished_stays before delete on run for each row
    when (old.state in ('open', 'attention')) execute function unfinished_stays();

-- A truncate that cascades asks no row.
create or replace function needed_stays() returns trigger language plpgsql as $$
begin
    if exists (select from run where state in ('open', 'attention')) or tg_table_name = 'version' and exists (select from run) then
        raise exception 'runs need what is in %, which cannot be truncated', tg_table_name using errcode = 'HF010';
    end if;
    return null;
end $$;
create or replace trigger version_needed before truncate on version for each statement execute function needed_stays();
create or replace trigger run_needed before truncate on run for each statement execute function needed_stays();

-- Who resolved a wait first stays the one who did.
create or replace function wait_moves() returns trigger language plpgsql as $$
begin
    if old.state in ('resolved', 'cancelled') or (old.state = 'suspended' and new.state = 'resolved') then
        raise exception 'wait % cannot go from % to %', old.id, old.state, new.state using errcode = 'HF012';
    end if;
    return new;
end $$;
create or replace trigger wait_moves before update of state on wait for each row
    when (old.state is distinct from new.state) execute function wait_moves();

-- A message is sent by whoever claimed it.
create or replace function outbox_moves() returns trigger language plpgsql as $$
begin
    raise exception 'message % cannot go from % to %', old.id, old.state, new.state using errcode = 'HF012';
end $$;
create or replace trigger outbox_moves before update of state on outbox for each row
    when (case old.state when 'queued' then new.state not in ('queued', 'sending') when 'sending' then false
          else new.state not in (old.state, 'queued') end) execute function outbox_moves();
