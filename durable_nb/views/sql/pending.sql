-- A row a pause that waits: one that is its run's newest entry, as an answer or an end comes after.
-- One that is damaged has neither reason nor context.
select
  execution_id,
  number,
  agent,
  try(body ->> '$.reason') as reason,
  try((body -> '$.context')::varchar) as context,
  'turn:' || turn || '/tool:' || tool as node_id,
  tool,
  make_timestamptz(moment) as created_at
from _entries
where kind = 'pause'
  and (execution_id, number) in (select (execution_id, max(number)) from _entries group by execution_id)
