-- A row a message. `number` is the entry that brought it, `position` its place in the transcript.
with said as (
  select
    execution_id,
    frame,
    number,
    unnest(json_extract(body, '$.messages[*]')) as message,
    generate_subscripts(json_extract(body, '$.messages[*]'), 1) as place
  from _entries
  where kind in ('turn', 'tool_call', 'end')
)
select
  execution_id,
  number,
  row_number() over (partition by execution_id, frame order by number, place) - 1 as position,
  message ->> '$.role' as role,
  coalesce(message ->> '$.content', '') as content,
  (message -> '$.tool_calls')::varchar as tool_calls,
  message ->> '$.tool_call_id' as tool_call_id
from said
