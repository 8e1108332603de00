-- Business time. Leases and beats use clock_timestamp(); only the tests replace this function, by one with an offset.
-- Volatile, so that it is inlined where rows are written; where rows are looked for by an index it is asked for once, as
-- (select holdfast_now()).
create or replace function holdfast_now() returns timestamptz language sql volatile parallel safe
as $$ select clock_timestamp() $$;
