-- A row a time that the model was asked, in the words of core/calls.py: at each `Turn`, and again at
-- each `Reentry` of one. The entry after it says what became of that, and bears what it cost.
with entry as (
  select
    *,
    lead(kind) over later as next,
    lead(body) over later as next_body
  from _entries
  window later as (partition by execution_id, frame order by number)
),
asked as (
  select
    *,
    case kind when 'turn' then number else (body ->> '$.of')::bigint end as turn_number,
    case
      when next in ('turn', 'tool_call') then 'answered'
      when next is null then 'open'
      when next <> 'end' then 'lost'
      else (next_body ->> '$.status')
    end as came_of_it,
    next_body -> '$.usage' as used,
    next_body -> '$.asked' as how,
    next_body ->> '$.error' as said
  from entry
  where kind = 'turn' or (kind = 'reentry' and tool is null)
)
select
  execution_id,
  turn_number as number,
  turn,
  'turn:' || turn as node_id,
  row_number() over (partition by execution_id, turn_number order by asked.number) as attempt,
  case came_of_it
    when 'completed' then 'answered'
    when 'cancelled' then 'lost'
    when 'open' then if(status = 'crashed', 'lost', 'in flight')
    else came_of_it
  end as outcome,
  how ->> '$.model' as model,
  (used ->> 0)::bigint as input_tokens,
  (used ->> 1)::bigint as output_tokens,
  if(used is null, null, coalesce((used ->> 2)::bigint, 0)) as cached_tokens,
  try_cast(used ->> 3 as double) as cost,
  if(outcome = 'answered', coalesce(json_array_length(how, '$.retries'), 0), null)::bigint as retries,
  (how -> '$.retries')::varchar as retried_after,
  (how ->> '$.trim[1]')::bigint as trim_before,
  (how ->> '$.trim[2]')::bigint as trim_after,
  (how ->> '$.trim[0]')::bigint as dropped,
  make_timestamptz(moment) as asked_at,
  if(outcome = 'failed', said, null) as error
from asked
left join _runs using (execution_id)
where not coalesce(regexp_matches(said, '^(TurnLimit|BudgetExceeded): '), false)  -- it was not asked
order by place, execution_id, asked.number
