-- A row a decision: an `Answer`, beside the pause that it is the claim of.
select
  answer.execution_id,
  answer.number,
  pause.number as pause,
  'turn:' || answer.turn || '/tool:' || answer.tool as node_id,
  answer.tool,
  pause.body ->> '$.reason' as reason,
  (answer.body ->> '$.approved')::boolean as approved,
  coalesce(
    answer.body ->> '$.outcome', if(approved, 'approved', 'rejected')
  ) as outcome,
  answer.body ->> '$.by' as "by",
  coalesce(answer.body ->> '$.source', 'human') as source,
  answer.body ->> '$.reason' as note,
  (answer.body -> '$.edited')::varchar as edited,
  (answer.body -> '$.changed')::varchar as changed,
  (answer.body -> '$.metadata')::varchar as metadata,
  answer.body ->> '$.shown' as shown,
  answer.body ->> '$.ran' as ran,
  (answer.moment - pause.moment) / 1e6 as waited,
  make_timestamptz(answer.moment) as decided_at
from _entries as answer
join _entries as pause
  on pause.execution_id = answer.execution_id and pause.number = (answer.body ->> '$.pause')::bigint
where answer.kind = 'answer'
order by answer.place, answer.execution_id, answer.number
