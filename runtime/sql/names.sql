-- Flows are named by steps and triggers, and may get other names.

create or replace function flow_renamed() returns trigger language plpgsql as $$
begin
    insert into former_name (workflow_id, team_id, name, until) values (old.id, old.team_id, old.name, clock_timestamp());
    return new;
end $$;
create or replace trigger flow_renamed after update of name on workflow for each row
    when (old.name is distinct from new.name) execute function flow_renamed();

-- The flow that a version made at `made_at` means by this name: the one that had it then and has another now, else the one
-- that has it, else the last that had it.
create or replace function holdfast_flow(of_team bigint, called text, made_at timestamptz) returns bigint language sql stable as $$
    select coalesce(
        (select f.workflow_id from former_name f join workflow w on w.id = f.workflow_id and w.deleted_at is null
         where f.team_id = of_team and f.name = called and f.until > made_at order by f.until limit 1),
        (select w.id from workflow w where w.team_id = of_team and w.name = called and w.deleted_at is null
         order by w.live_version_id is null, w.id limit 1),
        (select f.workflow_id from former_name f join workflow w on w.id = f.workflow_id and w.deleted_at is null
         where f.team_id = of_team and f.name = called order by f.until desc limit 1))
$$;
