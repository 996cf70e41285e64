-- A row a run, newest first: the order in which the store lists them.
select
  execution_id,
  agent,
  status,
  session,
  prompt,
  steps,
  make_timestamptz(created) as created_at,
  make_timestamptz(updated) as updated_at,
  tags,
  workdir
from _runs
