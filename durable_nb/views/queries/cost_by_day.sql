-- What models have cost a day, in US dollars and tokens. A day of which a price is not known says so.
-- $days = 30
select
  asked_at::date::varchar as day,
  model,
  count(*) as calls,
  sum(input_tokens)::bigint as input_tokens,
  sum(output_tokens)::bigint as output_tokens,
  sum(cached_tokens)::bigint as cached_tokens,
  sum(cost) as cost,
  count(*) filter (outcome = 'answered' and cost is null) as without_a_price,
  count(*) filter (outcome in ('lost', 'failed')) as in_vain
from usage
where asked_at >= now() - to_days($days::integer)
group by all
order by day desc, model
