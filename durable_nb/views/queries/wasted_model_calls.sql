-- The runs in which most replies were paid for or waited for in vain, and why.
-- $limit = 20
select
  execution_id,
  count(*) filter (outcome = 'lost') as lost,
  count(*) filter (outcome = 'failed') as failed,
  sum(retries)::bigint as retries,
  any_value(error order by asked_at desc) as newest_error
from usage
group by execution_id
having lost + failed + coalesce(sum(retries), 0) > 0
order by lost + failed desc, execution_id
limit $limit
