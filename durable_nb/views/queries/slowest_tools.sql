-- The tools that take longest: how often each ran, for how many seconds, and how often it failed.
-- $limit = 20
select
  tool,
  count(*) as calls,
  round(median(duration), 3) as median_seconds,
  round(max(duration), 3) as longest_seconds,
  round(sum(duration), 3) as total_seconds,
  count(*) filter (outcome = 'error') as errors,
  arg_max(execution_id, duration) as longest_in
from tool_calls
where duration is not null
group by tool
order by longest_seconds desc, tool
limit $limit
