-- Business time. Leases and beats use clock_timestamp(); only the tests replace this function, by one with an offset.
create or replace function holdfast_now() returns timestamptz language sql stable parallel safe
as $$ select clock_timestamp() $$;
