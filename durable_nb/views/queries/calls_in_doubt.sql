-- Calls that had begun and left no result: nobody knows whether they took effect.
select execution_id, tool as call, arguments as key, attempts, started_at as begun_at
from tool_calls
where outcome = 'in doubt'
union all by name
select execution_id, function as call, key, attempts, begun_at
from idempotency
where status = 'in doubt'
order by begun_at, execution_id, call
