-- A row a key of a run: what an `@idempotent` function did there. A call without a result is in
-- flight while its run is driven and has written nothing since; else nobody knows what came of it.
select
  execution_id,
  function,
  key,
  case
    when kept is not null then 'kept'
    when status = 'running' and number = newest then 'in flight'
    else 'in doubt'
  end as status,
  number,
  attempts,
  make_timestamptz(begun) as begun_at,
  make_timestamptz(kept) as kept_at,
  value
from _effects left join _runs using (execution_id)
